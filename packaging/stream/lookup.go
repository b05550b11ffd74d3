package stream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Query says which images to look up.
type Query struct {
	Arch         string // as RPM names it
	Platform     string // of those in Platforms; empty: azure
	Kind         Kind   // empty: any
	Plan         string // of Plans, for a marketplace image; empty: FreePlan, or with All any
	Generation   int    // of a marketplace image, 1 or 2; 0: 2, or with All any
	Confidential bool   // for a confidential VM, so no marketplace image
	All          bool   // all that match, and not the best only
}

// matches reports whether f is among what the query allows.
func (q Query) matches(f Found) bool {
	if f.Architecture != q.Arch || f.Platform != q.Platform || !q.allows(f.Kind) {
		return false
	}
	if f.Kind != KindMarketplace || f.Schema == draft {
		return q.Plan == ""
	}
	plan, generation := q.Plan, q.Generation
	if !q.All {
		plan, generation = cmp.Or(plan, FreePlan), cmp.Or(generation, 2)
	}
	return (plan == "" || plan == f.Plan) && (generation == 0 || generation == f.Generation)
}

// allows reports whether the query can be answered by images of a kind at all.
func (q Query) allows(kind Kind) bool {
	if kind == KindMarketplace && q.Confidential || kind != KindMarketplace && q.Plan != "" {
		return false
	}
	return q.Kind == "" || q.Kind == kind
}

// Lookup returns the best image that answers a query, or with Query.All all of
// them, best first, and why the first is the best. The choice is that of
// openshift-install. If there is none the error is a *NotFoundError. A broken
// entry that might have been chosen is an error too.
func (d *Document) Lookup(q Query) ([]Found, string, error) {
	q.Platform = cmp.Or(q.Platform, Platforms()[0])
	all, problems := d.decode()
	found := q.choose(all)
	if !q.All && len(found) > 0 {
		found = found[:1]
	}
	if p, ok := q.broken(problems, found); ok {
		p.Path = d.prefix + p.Path
		return nil, "", fmt.Errorf("cannot be relied on: %s", p)
	}
	if len(found) == 0 {
		return nil, "", notFound(q, all, len(problems))
	}
	for i := range found {
		found[i].Place = d.prefix + found[i].Place
	}
	return found, q.reason(found[0]), nil
}

// choose returns what the query allows, best first. openshift-install takes
// the free marketplace image of the VM's generation if there is one of
// generation 2, and fails if that of the VM's generation is then missing.
func (q Query) choose(all []Found) []Found {
	has := map[int]bool{}
	var found []Found
	for _, f := range all {
		if q.matches(f) {
			found = append(found, f)
		}
		if f.Architecture == q.Arch && f.Plan == FreePlan {
			has[f.Generation] = true
		}
	}
	if q.Kind == "" && q.Plan == "" && !q.All && q.allows(KindMarketplace) && q.Generation == 1 && has[2] != has[1] {
		if has[2] {
			return nil
		}
		found = slices.DeleteFunc(found, func(f Found) bool { return f.Plan == FreePlan })
	}
	return found
}

// broken returns a problem with an entry that might have been found: a file is
// looked at only where there is nothing better.
func (q Query) broken(problems []Problem, found []Found) (Problem, bool) {
	better := len(found) > 0 && !slices.ContainsFunc(found, func(f Found) bool { return f.Kind == KindVHD })
	arch := []string{"architectures", q.Arch}
	extensions := join(arch, "rhel-coreos-extensions")
	for _, p := range problems {
		at := func(kind Kind, place ...string) bool {
			root := path(place...)
			return q.allows(kind) && (within(p.Path, root) || within(root, p.Path))
		}
		if at(KindMarketplace, join(extensions, "marketplace", "azure")...) || at(KindMarketplace, q.Arch, "azure") ||
			at(KindDisk, join(extensions, "azure-disk")...) || !better && at(KindVHD, join(arch, "artifacts", q.Platform)...) ||
			!p.Schema && (at(KindMarketplace, arch...) || at(KindDisk, arch...)) {
			return p, true
		}
	}
	return Problem{}, false
}

// within reports whether a place is another, or inside it.
func within(place, other string) bool {
	return place == other || strings.HasPrefix(place, other+".")
}

// reason says why the first of what was found is the best.
func (q Query) reason(best Found) string {
	why := ""
	switch {
	case q.Kind != "" || q.Plan != "":
		why = "as asked for"
	case best.Schema == draft:
		why = "the document is of an early draft of the schema"
	case best.Kind == KindMarketplace:
		why = "openshift-install prefers a marketplace image without a purchase plan"
	case best.Kind == KindDisk && q.Confidential:
		why = "openshift-install takes the blob for a confidential VM"
	case best.Kind == KindDisk:
		why = "there is no generation 2 marketplace image without a purchase plan"
	default:
		why = "there is no marketplace image without a purchase plan, and no blob"
	}
	return fmt.Sprintf("chose %s: %s", best, why)
}

// All returns every image that the document names for Azure, best first.
func (d *Document) All() []Found {
	all, _ := d.decode()
	return all
}

// NotFoundError says that a document has nothing that answers a query.
type NotFoundError struct {
	Query    Query
	Has      []string // what it has instead
	Problems int      // how many places are wrong; what was meant may be there
}

// maxHas is how many of Has an error message names.
const maxHas = 20

func notFound(q Query, all []Found, problems int) *NotFoundError {
	e := &NotFoundError{Query: q, Problems: problems}
	for _, f := range all {
		e.Has = append(e.Has, f.String())
	}
	e.Has = slices.Compact(e.Has) // formats of one image
	return e
}

func (e *NotFoundError) Error() string {
	what := "the stream has no "
	if e.Query.Platform != Platforms()[0] {
		what += "Azure Stack "
	}
	what += cmp.Or(string(e.Query.Kind), "image") + " for " + e.Query.Arch
	if e.Query.Plan != "" {
		what += ", plan " + e.Query.Plan
	}
	if e.Query.Generation != 0 {
		what += fmt.Sprintf(", generation V%d", e.Query.Generation)
	}
	has := strings.Join(e.Has[:min(len(e.Has), maxHas)], ", ")
	if n := len(e.Has); n > maxHas {
		has = fmt.Sprintf("%s and %d more", has, n-maxHas)
	}
	s := fmt.Sprintf("%s; it has: %s", what, cmp.Or(has, "nothing for Azure at all"))
	if e.Problems > 0 {
		s += fmt.Sprintf(" (places with problems: %d; azure-stream verify names them)", e.Problems)
	}
	return s
}
