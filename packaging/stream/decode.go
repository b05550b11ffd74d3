package stream

import (
	"fmt"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// Stream returns what the document says, and where it is not as the schema
// wants it; such places are empty in the Stream. Names are taken exactly:
// encoding/json would take "Stream" for "stream".
func (d *Document) Stream() (Stream, []Problem) {
	var c decoder
	root := d.doc.Root()
	s := Stream{
		Stream:        c.text(root, nonEmpty(), "stream"),
		Architectures: map[string]Arch{},
	}
	if meta := c.object(root, false, "metadata"); meta != nil {
		s.Metadata.LastModified = c.text(root, optional(anyText()), "metadata", "last-modified")
		s.Metadata.Generator = c.text(root, optional(anyText()), "metadata", "generator")
	}
	for name := range c.object(root, true, "architectures").All() {
		s.Architectures[name] = c.arch(root, name)
	}
	return s, c.problems
}

func anyText() rule {
	return rule{want: "a string", ok: func(string) bool { return true }}
}

// A decoder reads values out of a tree and collects what is wrong with it.
type decoder struct{ problems []Problem }

func (c *decoder) wrong(at []string, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path(at...), Text: fmt.Sprintf(format, args...), Schema: true})
}

// object returns the object at a path of the root, or nil.
func (c *decoder) object(root *jsontree.Node, required bool, at ...string) *jsontree.Node {
	n := root.Get(at...)
	switch {
	case n.IsObject():
		return n
	case n != nil:
		c.wrong(at, "is %s; want an object", n.Kind())
	case required:
		c.wrong(at, "is missing; want an object")
	}
	return nil
}

// text returns the string at a path of the root, or "" if it breaks the rule.
func (c *decoder) text(root *jsontree.Node, r rule, at ...string) string {
	n := root.Get(at...)
	s, isText := n.Text()
	switch {
	case n == nil:
		if !r.optional {
			c.wrong(at, "is missing; want %s", r.want)
		}
	case !isText:
		c.wrong(at, "is %s; want %s", n.Kind(), r.want)
	case !r.ok(s) && (s != "" || !r.optional):
		c.wrong(at, "is %.130q; want %s", s, r.want)
	default:
		return s
	}
	return ""
}

func (c *decoder) arch(root *jsontree.Node, name string) Arch {
	a := Arch{Artifacts: map[string]PlatformArtifacts{}}
	base := []string{"architectures", name}
	if c.object(root, true, base...) == nil {
		return a
	}
	for platform := range c.object(root, true, join(base, "artifacts")...).All() {
		a.Artifacts[platform] = c.platform(root, join(base, "artifacts", platform))
	}
	c.object(root, false, join(base, "images")...)
	if c.object(root, false, join(base, "rhel-coreos-extensions")...) != nil {
		a.RHELCoreOSExtensions = c.extensions(root, join(base, "rhel-coreos-extensions"))
	}
	return a
}

func (c *decoder) platform(root *jsontree.Node, at []string) PlatformArtifacts {
	p := PlatformArtifacts{Formats: map[string]ImageFormat{}}
	if c.object(root, true, at...) == nil {
		return p
	}
	p.Release = c.text(root, nonEmpty(), join(at, "release")...)
	for format := range c.object(root, true, join(at, "formats")...).All() {
		in := join(at, "formats", format)
		if c.object(root, true, in...) == nil {
			continue
		}
		p.Formats[format] = ImageFormat{
			Disk:      c.artifact(root, join(in, "disk")),
			Kernel:    c.artifact(root, join(in, "kernel")),
			Initramfs: c.artifact(root, join(in, "initramfs")),
			Rootfs:    c.artifact(root, join(in, "rootfs")),
		}
	}
	return p
}

func (c *decoder) artifact(root *jsontree.Node, at []string) *Artifact {
	if c.object(root, false, at...) == nil {
		return nil
	}
	return &Artifact{
		Location:           c.text(root, httpsURL(), join(at, "location")...),
		Signature:          c.text(root, optional(httpsURL()), join(at, "signature")...),
		Sha256:             c.text(root, digest(), join(at, "sha256")...),
		UncompressedSha256: c.text(root, optional(digest()), join(at, "uncompressed-sha256")...),
	}
}

// join never shares memory with base, so that siblings can extend it.
func join(base []string, names ...string) []string {
	return append(append(make([]string, 0, len(base)+len(names)), base...), names...)
}
