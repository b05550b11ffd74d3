package stream

import (
	"fmt"
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
	r := metaReader{root: doc.Root()}
	m := Meta{
		Stream:  r.stream(),
		Release: r.release(),
		Arch:    r.text("coreos-assembler.basearch"),
		Built:   r.text("coreos-assembler.build-timestamp"),
		Images:  map[string]Image{},
		DiskURL: r.text("azure", "url"),
	}
	if m.Built == "" {
		m.Built = r.text("ostree-timestamp")
	}
	for _, platform := range Platforms() {
		if r.root.Get("images", platform) != nil {
			m.Images[platform] = r.image(platform)
		}
	}
	m.Notes = r.notes
	switch {
	case r.err != nil:
		return Meta{}, r.err
	case m.Release == "":
		return Meta{}, fmt.Errorf("has neither buildid nor ostree-version: is it the meta.json of a build?")
	case m.Arch == "":
		return Meta{}, fmt.Errorf("coreos-assembler.basearch is missing: is it the meta.json of a build?")
	case m.DiskURL != "" && (!isHTTPS(m.DiskURL) || strings.Contains(m.DiskURL, "?")):
		return Meta{}, fmt.Errorf("azure.url is %.130q: want https://HOST/PATH, without a query: an access token must not be published",
			m.DiskURL)
	case len(m.Images) == 0 && m.DiskURL == "":
		return Meta{}, fmt.Errorf("has no image %s: build one (cosa osbuild azure)", r.others())
	}
	return m, nil
}
