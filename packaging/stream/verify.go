package stream

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Verify returns what is wrong with the document: first what breaks the
// schema, then where the Azure part contradicts itself. Releases are compared
// for Azure only; other platforms may be behind for reasons of their own.
func (d *Document) Verify() []Problem {
	found, problems := d.decode()
	v := verifier{problems: problems, sums: map[string]string{}}
	slices.SortStableFunc(found, func(a, b Found) int { // files first
		if a.Architecture != b.Architecture {
			return strings.Compare(a.Architecture, b.Architecture)
		}
		return slices.Index(Kinds(), b.Kind) - slices.Index(Kinds(), a.Kind)
	})
	hint, azure := "", false
	for _, f := range found {
		switch {
		case f.Schema == draft:
			hint = fmt.Sprintf("; %s is of an early draft, which only azure-stream lookup reads", f.Place)
			continue
		case f.Kind == KindVHD:
			platform, _, _ := strings.Cut(f.Place, ".formats.")
			v.same(platform+".release", f.Release, f.Architecture)
			v.file(f)
		case f.Kind == KindDisk:
			v.same(f.Place+".release", f.Release, f.Architecture)
		}
		azure = true
	}
	if !azure {
		v.wrong(path("architectures"), "has nothing for Azure: put it there with azure-stream add%s", hint)
	}
	for i := range v.problems {
		v.problems[i].Path = d.prefix + v.problems[i].Path
	}
	return v.problems
}

// A verifier collects contradictions.
type verifier struct {
	problems       []Problem
	release, place string // the first release seen, and where
	last           string // the place of the last release seen
	sums           map[string]string
}

func (v *verifier) wrong(at, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: at, Text: fmt.Sprintf(format, args...)})
}

// same compares a release with the first one.
func (v *verifier) same(at, release, arch string) {
	switch {
	case release == "" || at == v.last: // the schema's business, or of another format
	case v.release == "":
		v.release, v.place = release, at
	case v.release != release:
		v.wrong(at, "is %.130q, but %s is %.130q: run azure-stream add with the meta.json of one and the same build, for %s too",
			release, v.place, v.release, arch)
	}
	v.last = at
}

// file checks that a file is of the release it is filed under, as far as its
// location tells, and is not filed twice.
func (v *verifier) file(f Found) {
	if f.Location != "" && !strings.Contains(f.Location, url.PathEscape(f.Release)) {
		v.wrong(f.Place+".location", "is %.300q, which does not name release %.130q: run azure-stream add with a --base-url that does",
			f.Location, f.Release)
	}
	if f.Sha256 == "" {
		return
	}
	where := f.Place + ".sha256"
	if first, ok := v.sums[f.Sha256]; ok {
		v.wrong(where, "is the digest at %s too, so one of the two is of another file: run azure-stream add for both", first)
	}
	v.sums[f.Sha256] = where
}
