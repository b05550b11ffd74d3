package stream

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Verify returns what is wrong with the document: first what breaks the
// schema, then where the Azure part contradicts itself. Releases are compared
// for Azure only; other platforms may be behind for reasons of their own.
func (d *Document) Verify() []Problem {
	s, problems := d.Stream()
	v := verifier{problems: problems, sums: map[string]string{}}
	for _, arch := range slices.Sorted(maps.Keys(s.Architectures)) {
		v.arch(arch, s.Architectures[arch])
	}
	if !v.azure {
		v.wrong(path("architectures"), "has nothing for Azure: put it there with azure-stream add%s", d.draftHint())
	}
	return v.problems
}

func (d *Document) draftHint() string {
	if found := d.drafts(); len(found) > 0 {
		return fmt.Sprintf("; %s is of an early draft, which only azure-stream lookup reads", found[0].Place)
	}
	return ""
}

// A verifier collects contradictions.
type verifier struct {
	problems       []Problem
	azure          bool   // something for Azure was seen
	release, place string // the first release seen, and where
	sums           map[string]string
}

func (v *verifier) wrong(at, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: at, Text: fmt.Sprintf(format, args...)})
}

func (v *verifier) arch(name string, a Arch) {
	for _, platform := range Platforms() {
		p, ok := a.Artifacts[platform]
		if !ok {
			continue
		}
		v.azure = true
		at := []string{"architectures", name, "artifacts", platform}
		v.same(path(join(at, "release")...), p.Release, name)
		for _, format := range slices.Sorted(maps.Keys(p.Formats)) {
			disk := p.Formats[format].Disk
			if disk != nil {
				v.disk(join(at, "formats", format, "disk"), p.Release, *disk)
			}
		}
		if len(p.Formats) == 0 {
			v.wrong(path(join(at, "formats")...), "has no image: run azure-stream add with the meta.json of %s", name)
		}
	}
	if e := a.RHELCoreOSExtensions; e != nil && e.AzureDisk != nil {
		v.azure = true
		v.same(path("architectures", name, "rhel-coreos-extensions", "azure-disk", "release"), e.AzureDisk.Release, name)
	}
	if e := a.RHELCoreOSExtensions; e != nil && e.Marketplace != nil {
		v.azure = true
	}
}

// same compares a release with the first one.
func (v *verifier) same(at, release, arch string) {
	switch {
	case release == "": // the schema's business
	case v.release == "":
		v.release, v.place = release, at
	case v.release != release:
		v.wrong(at, "is %.130q, but %s is %.130q: run azure-stream add with the meta.json of one and the same build, for %s too",
			release, v.place, v.release, arch)
	}
}

// disk checks that a file is of the release it is filed under, as far as its
// location tells, and is not filed twice.
func (v *verifier) disk(at []string, release string, a Artifact) {
	if a.Location != "" && !strings.Contains(a.Location, url.PathEscape(release)) {
		v.wrong(path(join(at, "location")...), "is %.300q, which does not name release %.130q: run azure-stream add with a --base-url that does",
			a.Location, release)
	}
	if a.Sha256 == "" {
		return
	}
	where := path(join(at, "sha256")...)
	if first, ok := v.sums[a.Sha256]; ok {
		v.wrong(where, "is the digest at %s too, so one of the two is of another file: run azure-stream add for both", first)
	}
	v.sums[a.Sha256] = where
}
