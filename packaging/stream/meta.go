package stream

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// Meta is what the meta.json of a coreos-assembler build says about Azure.
type Meta struct {
	Stream  string // the name of the stream; may be empty
	Release string
	Arch    string
	Built   string           // when, RFC 3339; may be empty
	Images  map[string]Image // by platform, of those in Platforms
	DiskURL string           // the uploaded page blob; may be empty
	Notes   []string         // what the reader of the file may want to know
}

// Image is one file of the build.
type Image struct {
	Path               string
	Format             string // of those in Formats
	Sha256             string
	UncompressedSha256 string // empty if there is none
}

// ParseMeta reads a meta.json. It fails if the file does not say enough to
// name an image, or has none for Azure.
func ParseMeta(in []byte) (Meta, error) {
	doc, err := jsontree.Parse(in)
	if err != nil {
		return Meta{}, err
	}
	var r reader
	root := cursor{node: doc.Root()}
	text := func(at ...string) string { return r.text(root.get(at...), optional(anyText())) }
	// The release is the build ID, as in the names of the build's files and
	// in what coreos-assembler itself publishes. The stream is the branch that
	// the image's configuration came from; where that is not in git, the last
	// part of the ref, or the image's name.
	id, version, ref := text("buildid"), text("ostree-version"), text("ref")
	m := Meta{
		Stream:  cmp.Or(text("coreos-assembler.container-config-git", "branch"), ref[strings.LastIndexByte(ref, '/')+1:], text("name")),
		Release: cmp.Or(id, version),
		Arch:    text("coreos-assembler.basearch"),
		Built:   cmp.Or(text("coreos-assembler.build-timestamp"), text("ostree-timestamp")),
		Images:  map[string]Image{},
		DiskURL: r.text(root.get("azure", "url"), optional(blobURL())),
	}
	if id != "" && version != "" && version != id {
		m.Notes = append(m.Notes, fmt.Sprintf("the release is the build ID %q, not ostree-version %q", id, version))
	}
	for _, platform := range Platforms() {
		if n := root.get("images", platform); n.node != nil {
			m.Images[platform] = r.image(n)
		}
	}
	switch {
	case len(r.problems) > 0:
		return Meta{}, errors.New(r.problems[0].String())
	case m.Release == "":
		return Meta{}, errors.New("has neither buildid nor ostree-version: is it the meta.json of a build?")
	case m.Arch == "":
		return Meta{}, errors.New("coreos-assembler.basearch is missing: is it the meta.json of a build?")
	case len(m.Images) == 0 && m.DiskURL == "":
		names := slices.Sorted(maps.Keys(maps.Collect(root.get("images").all())))
		return Meta{}, fmt.Errorf("has no image for Azure, only for: %.400s; build one (cosa osbuild azure)", cmp.Or(strings.Join(names, ", "), "nothing"))
	}
	return m, nil
}

func (r *reader) image(n cursor) Image {
	name := r.text(n.get("path"), diskPath())
	return Image{
		Path:               name,
		Format:             formatOf(name),
		Sha256:             r.text(n.get("sha256"), digest()),
		UncompressedSha256: r.text(n.get("uncompressed-sha256"), optional(digest())),
	}
}

// formatOf is what a file's name ends in, of those in Formats.
func formatOf(name string) string {
	for _, format := range Formats() {
		if strings.HasSuffix(name, "."+format) {
			return format
		}
	}
	return ""
}
