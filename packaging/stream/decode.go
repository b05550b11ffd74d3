package stream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A decoder collects the images that a document names.
type decoder struct {
	reader
	found []Found
}

// decode returns the images for Azure, best first, and what is wrong with the
// document: where it is not as the schema wants it, and broken drafts. Names
// are taken exactly: encoding/json would take "Stream" for "stream".
func (d *Document) decode() ([]Found, []Problem) {
	var c decoder
	root := cursor{node: d.doc.Root()}
	if d.isMarketplace {
		for arch, n := range root.all() {
			c.marketplace(base(arch), c.object(n, true))
		}
	} else {
		c.text(root.get("stream"), nonEmpty())
		meta := c.object(root.get("metadata"), false)
		c.text(meta.get("last-modified"), optional(anyText()))
		c.text(meta.get("generator"), optional(anyText()))
		for arch, n := range c.object(root.get("architectures"), true).all() {
			c.arch(base(arch), n)
		}
	}
	slices.SortStableFunc(c.found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Architecture, b.Architecture),
			slices.Index(Plans(), a.Plan)-slices.Index(Plans(), b.Plan), b.Generation-a.Generation,
			strings.Compare(a.Platform, b.Platform), slices.Index(Formats(), a.Format)-slices.Index(Formats(), b.Format))
	})
	return c.found, c.problems
}

// base is what the images of an architecture have in common.
func base(arch string) Found {
	return Found{Architecture: arch, Platform: Platforms()[0], Schema: published}
}

// rank is the place of an image's kind. Only a file is worse than a draft.
func rank(f Found) int {
	order := []string{"marketplace published", "disk published", "disk draft", "marketplace draft", "vhd published"}
	return slices.Index(order, string(f.Kind)+" "+f.Schema)
}

func (c *decoder) add(f Found, kind Kind, n cursor) {
	f.Kind, f.Place = kind, path(n.at...)
	c.found = append(c.found, f)
}

func (c *decoder) arch(f Found, n cursor) {
	n = c.object(n, true)
	for platform, p := range c.object(n.get("artifacts"), true).all() {
		f.Platform = platform
		c.platform(f, c.object(p, true))
	}
	f.Platform = Platforms()[0]
	c.object(n.get("images"), false)
	e := c.object(n.get("rhel-coreos-extensions"), false)
	if disk := c.object(e.get("azure-disk"), false); disk.node != nil {
		blob := f
		blob.Release, blob.URL = c.text(disk.get("release"), nonEmpty()), c.text(disk.get("url"), httpsURL())
		c.add(blob, KindDisk, disk)
	}
	c.marketplace(f, c.object(e.get("marketplace"), false))
	c.drafts(f, n)
}

func (c *decoder) platform(f Found, n cursor) {
	f.Release = c.text(n.get("release"), nonEmpty())
	formats := c.object(n.get("formats"), true)
	if formats.node != nil && formats.isEmpty() && slices.Contains(Platforms(), f.Platform) {
		c.contradiction(formats, "has no image: run azure-stream add with the meta.json of %s", f.Architecture)
	}
	for format, files := range formats.all() {
		files = c.object(files, true)
		for _, name := range []string{"disk", "kernel", "initramfs", "rootfs"} {
			file := c.object(files.get(name), false)
			if file.node == nil {
				continue
			}
			f.Format = format
			f.Location, f.Signature = c.text(file.get("location"), httpsURL()), c.text(file.get("signature"), optional(httpsURL()))
			f.Sha256, f.UncompressedSha256 = c.text(file.get("sha256"), digest()), c.text(file.get("uncompressed-sha256"), optional(digest()))
			if name == "disk" && slices.Contains(Platforms(), f.Platform) && slices.Contains(Formats(), format) {
				c.add(f, KindVHD, file)
			}
		}
	}
}

// marketplace reads the marketplace images of one architecture.
func (c *decoder) marketplace(f Found, n cursor) {
	for plan, images := range c.object(n.get("azure"), false).all() {
		c.known(images.at, "purchase plan", Plans())
		for generation, image := range c.object(images, true).all() {
			c.known(image.at, "generation", generations())
			i := slices.Index(generations(), generation)
			if image = c.object(image, false); image.node == nil || i < 0 {
				continue
			}
			var parts []string
			for _, part := range urnParts() {
				parts = append(parts, c.text(image.get(part), urnPart()))
			}
			f.Plan, f.Generation, f.URN, f.Release = plan, 2-i, strings.Join(parts, ":"), parts[3]
			if slices.Contains(Plans(), plan) {
				c.add(f, KindMarketplace, image)
			}
		}
	}
}

// contradiction reports what the schema allows.
func (c *decoder) contradiction(n cursor, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path(n.at...), Text: fmt.Sprintf(format, args...)})
}

// known reports a name that the schema does not have, such as one that is
// misspelt: the entry would be passed over.
func (c *decoder) known(at []string, what string, names []string) {
	if !slices.Contains(names, at[len(at)-1]) {
		c.wrong(at, "is not a known %s; want one of %s", what, strings.Join(names, ", "))
	}
}

// drafts reads what was written while the schema was still being discussed.
// The published schema has none of these places:
//
//	architectures.A.azure.url                        a URL for each architecture
//	architectures.A.rhcos-VERSION-private.azure.url  an extension section for RHEL CoreOS
//	architectures.A.images.azure.image               a URN beside the other clouds' images
func (c *decoder) drafts(f Found, n cursor) {
	f.Schema = draft
	entry := func(kind Kind, n cursor, want rule, release string) {
		s, _ := n.node.Text()
		f.URL, f.URN, f.Release = s, "", release
		if kind == KindMarketplace {
			f.URL, f.URN, f.Release = "", s, s[strings.LastIndexByte(s, ':')+1:]
		}
		if n.node != nil && want.ok(s) {
			c.add(f, kind, n)
		} else if n.node != nil {
			c.contradiction(n, "is %.130q; want %s", s, want.want)
		}
	}
	entry(KindDisk, n.get("azure", "url"), httpsURL(), "")
	for name, section := range n.all() {
		version, isPrivate := strings.CutSuffix(name, "-private")
		if version, isRHCOS := strings.CutPrefix(version, "rhcos-"); isPrivate && isRHCOS {
			entry(KindDisk, section.get("azure", "url"), httpsURL(), version)
		}
	}
	entry(KindMarketplace, n.get("images", "azure", "image"), urn(), "")
}
