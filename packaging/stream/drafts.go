package stream

import "strings"

// drafts returns what documents hold that were written while the schema was
// still being discussed. The published schema has none of these places:
//
//	architectures.A.azure.url                        a URL for each architecture
//	architectures.A.rhcos-VERSION-private.azure.url  an extension section for RHEL CoreOS
//	architectures.A.images.azure.image               a URN beside the other clouds' images
//
// An entry that is not a URL, or not a URN, is passed over.
func (d *Document) drafts() []Found {
	var disks, images []Found
	for arch, a := range d.doc.Root().Get("architectures").All() {
		base := Found{Architecture: arch, Platform: Platforms()[0], Schema: draft}
		disk := func(release string, at ...string) {
			f := base
			f.Kind, f.Release, f.Place = KindDisk, release, path(join([]string{"architectures", arch}, at...)...)
			if f.URL, _ = a.Get(at...).Text(); isHTTPS(f.URL) {
				disks = append(disks, f)
			}
		}
		disk("", "azure", "url")
		for section := range a.All() {
			version, isPrivate := strings.CutSuffix(section, "-private")
			if version, isRHCOS := strings.CutPrefix(version, "rhcos-"); isPrivate && isRHCOS {
				disk(version, section, "azure", "url")
			}
		}
		urn, _ := a.Get("images", "azure", "image").Text()
		if parts := strings.Split(urn, ":"); len(parts) == 4 && urnPart().ok(strings.Join(parts, "")) {
			f := base
			f.Kind, f.URN, f.Release = KindMarketplace, urn, parts[3]
			f.Place = path("architectures", arch, "images", "azure", "image")
			images = append(images, f)
		}
	}
	return append(disks, images...)
}
