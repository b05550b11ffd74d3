package stream

import (
	"maps"
	"slices"
	"strings"
)

// found returns what the published schema knows, by kind, best first.
func (s Stream) found() []Found {
	var disks, images, vhds []Found
	for _, arch := range slices.Sorted(maps.Keys(s.Architectures)) {
		a := s.Architectures[arch]
		base := Found{Architecture: arch, Platform: Platforms()[0], Schema: published}
		if e := a.RHELCoreOSExtensions; e != nil && e.AzureDisk != nil {
			f := base
			f.Kind, f.Release, f.URL = KindDisk, e.AzureDisk.Release, e.AzureDisk.URL
			f.Place = path("architectures", arch, "rhel-coreos-extensions", "azure-disk")
			disks = append(disks, f)
		}
		if e := a.RHELCoreOSExtensions; e != nil && e.Marketplace != nil {
			images = append(images, e.Marketplace.found(base)...)
		}
		vhds = append(vhds, a.vhds(base)...)
	}
	return slices.Concat(disks, images, vhds)
}

// vhds returns the files to download for an architecture.
func (a Arch) vhds(base Found) []Found {
	var found []Found
	for _, platform := range Platforms() {
		p := a.Artifacts[platform]
		for _, format := range Formats() {
			disk := p.Formats[format].Disk
			if disk == nil {
				continue
			}
			f := base
			f.Kind, f.Platform, f.Format, f.Release = KindVHD, platform, format, p.Release
			f.Location, f.Signature, f.Sha256, f.UncompressedSha256 = disk.Location, disk.Signature, disk.Sha256, disk.UncompressedSha256
			f.Place = path("architectures", base.Architecture, "artifacts", platform, "formats", format, "disk")
			found = append(found, f)
		}
	}
	return found
}

// found returns the images that need no purchase plan before the others, and
// generation 2 before generation 1.
func (m Marketplace) found(base Found) []Found {
	plans := slices.SortedFunc(maps.Keys(m.Azure), func(a, b string) int {
		const free = "no-purchase-plan"
		switch {
		case a == free && b != free:
			return -1
		case b == free && a != free:
			return 1
		}
		return strings.Compare(a, b)
	})
	var found []Found
	for _, plan := range plans {
		for i, img := range []*AzureMarketplaceImage{m.Azure[plan].Gen2, m.Azure[plan].Gen1} {
			if img == nil {
				continue
			}
			f := base
			f.Kind, f.Plan, f.Generation, f.URN, f.Release = KindMarketplace, plan, 2-i, img.URN(), img.Version
			f.Place = path("architectures", base.Architecture, "rhel-coreos-extensions", "marketplace", "azure", plan, []string{gen2, gen1}[i])
			found = append(found, f)
		}
	}
	return found
}
