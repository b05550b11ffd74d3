package stream

import (
	"fmt"
)

// AddOptions say what the build's own file does not know.
type AddOptions struct {
	// BaseURL is the folder that the build's files can be downloaded from.
	// Without it no location is written.
	BaseURL string

	// Unsigned leaves out the signature, which is otherwise taken to be
	// beside the file, under its name with .sig behind it.
	Unsigned bool
}

// Add puts the images of a build into the document, in place of those that
// are there for its architecture. It returns messages for the user.
// After an error the document is not fit to be used.
func (d *Document) Add(m Meta, o AddOptions) ([]string, error) {
	if err := CheckBaseURL(o.BaseURL); err != nil {
		return nil, err
	}
	if d.isMarketplace {
		return nil, errMarketplace
	}
	a := adder{Document: d, meta: m, opts: o, notes: m.Notes}
	a.header()
	for _, platform := range Platforms() {
		if img, ok := m.Images[platform]; ok {
			a.image(platform, img)
		}
	}
	a.disk()
	return a.notes, a.err
}

// An adder puts one build into a document.
type adder struct {
	*Document
	meta  Meta
	opts  AddOptions
	notes []string
	err   error // the first
}

func (a *adder) set(value string, at ...string) {
	if a.err == nil {
		a.err = a.doc.Set(value, at...)
	}
}

func (a *adder) get(at ...string) string {
	s, _ := a.doc.Root().Get(at...).Text()
	return s
}

func (a *adder) note(format string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// header makes an empty document one of the build's stream.
func (a *adder) header() {
	if !(cursor{node: a.doc.Root()}).isEmpty() {
		return
	}
	if a.meta.Stream == "" {
		a.note("the meta.json names no stream: write it into the document")
	}
	a.setOrDrop(a.meta.Stream, "stream")
	a.setOrDrop(a.meta.Built, "metadata", "last-modified")
}

func (a *adder) image(platform string, img Image) {
	at := []string{"architectures", a.meta.Arch, "artifacts", platform}
	old := a.get(join(at, "release")...)
	if old != "" && old != a.meta.Release {
		a.dropOthers(join(at, "formats"), img.Format, old)
	}
	a.set(a.meta.Release, join(at, "release")...)
	disk := join(at, "formats", img.Format, "disk")
	a.location(disk, img, old == a.meta.Release)
	a.set(img.Sha256, join(disk, "sha256")...)
	a.setOrDrop(img.UncompressedSha256, join(disk, "uncompressed-sha256")...)
}

// dropOthers removes the formats of an older release, since the release is
// said once for all of them.
func (a *adder) dropOthers(at []string, keep, old string) {
	for format := range a.doc.Root().Get(at...).All() {
		if format != keep {
			a.doc.Delete(join(at, format)...)
			a.note("%s removed: it was of release %q", path(join(at, format)...), old)
		}
	}
}

func (a *adder) setOrDrop(value string, at ...string) {
	if value == "" {
		a.doc.Delete(at...)
		return
	}
	a.set(value, at...)
}

// disk sets the page blob that the build was uploaded to.
func (a *adder) disk() {
	at := []string{"architectures", a.meta.Arch, "rhel-coreos-extensions", "azure-disk"}
	if a.meta.DiskURL != "" {
		a.set(a.meta.Release, join(at, "release")...)
		a.set(a.meta.DiskURL, join(at, "url")...)
	} else if old := a.get(join(at, "release")...); old != "" && old != a.meta.Release {
		a.note("%s stays at release %q: the meta.json has no azure.url", path(at...), old)
	}
}
