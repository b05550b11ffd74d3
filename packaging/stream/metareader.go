package stream

import (
	"fmt"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// A metaReader reads values out of a tree and remembers the first mistake.
type metaReader struct {
	root  *jsontree.Node
	err   error
	notes []string
}

func (r *metaReader) text(at ...string) string {
	n := r.root.Get(at...)
	s, ok := n.Text()
	if n != nil && !ok && r.err == nil {
		r.err = fmt.Errorf("%s is %s: want a string", path(at...), n.Kind())
	}
	return s
}

// release is the build ID, as in the names of the build's files and in what
// coreos-assembler itself publishes.
func (r *metaReader) release() string {
	id, version := r.text("buildid"), r.text("ostree-version")
	if id == "" {
		return version
	}
	if version != "" && version != id {
		r.notes = append(r.notes, fmt.Sprintf("the release is the build ID %q, not ostree-version %q", id, version))
	}
	return id
}

// stream is the branch that the image's configuration came from; where the
// configuration is not in git, the last part of the ref, or the image's name.
func (r *metaReader) stream() string {
	if s := r.text("coreos-assembler.container-config-git", "branch"); s != "" {
		return s
	}
	ref := r.text("ref")
	if s := ref[strings.LastIndexByte(ref, '/')+1:]; s != "" {
		return s
	}
	return r.text("name")
}

func (r *metaReader) image(platform string) Image {
	at := []string{"images", platform}
	img := Image{
		Path:               r.text(join(at, "path")...),
		Sha256:             r.text(join(at, "sha256")...),
		UncompressedSha256: r.text(join(at, "uncompressed-sha256")...),
	}
	fail := func(name, have, want string) {
		if r.err == nil {
			r.err = fmt.Errorf("%s is %.130q: want %s", path(join(at, name)...), have, want)
		}
	}
	for _, format := range Formats() {
		if img.Format == "" && strings.HasSuffix(img.Path, "."+format) {
			img.Format = format
		}
	}
	if img.Format == "" {
		fail("path", img.Path, "a file name that ends in ."+strings.Join(Formats(), ", ."))
	}
	for part := range strings.SplitSeq(img.Path, "/") {
		if part == "" || part == "." || part == ".." {
			fail("path", img.Path, "a path below the build's folder, without empty, . and .. parts")
		}
	}
	if !isDigest(img.Sha256) {
		fail("sha256", img.Sha256, digest().want)
	}
	if img.UncompressedSha256 != "" && !isDigest(img.UncompressedSha256) {
		fail("uncompressed-sha256", img.UncompressedSha256, digest().want)
	}
	return img
}

// others names the images that there are instead.
func (r *metaReader) others() string {
	var names []string
	for name := range r.root.Get("images").All() {
		names = append(names, name)
	}
	if len(names) == 0 {
		return "at all"
	}
	return fmt.Sprintf("for Azure, only for %.400s", strings.Join(names, ", "))
}
