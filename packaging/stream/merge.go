package stream

import (
	"errors"
	"fmt"
	"strings"
)

// Merge puts the marketplace images of another document, usually a marketplace
// file, in place of those that are in d, as openshift-install does: for each
// architecture that both have. It returns messages for the user.
// After an error the document is not fit to be used.
func (d *Document) Merge(from *Document) ([]string, error) {
	if d.isMarketplace {
		return nil, errMarketplace
	}
	found, problems := from.decode()
	if len(problems) > 0 {
		return nil, fmt.Errorf("cannot be relied on: %s%s", from.prefix, problems[0])
	}
	a := adder{Document: d}
	in := func(f Found) []string { // the plan
		return []string{"architectures", f.Architecture, "rhel-coreos-extensions", "marketplace", "azure", f.Plan}
	}
	wanted := map[string]bool{} // architectures and images
	for _, f := range found {
		if f.Kind != KindMarketplace || f.Schema == draft {
			continue
		}
		isHere := d.doc.Root().Get("architectures", f.Architecture).IsObject()
		if !isHere && !wanted[f.Architecture] {
			a.note("the marketplace images of %s are left out, as the document does not have that architecture", f.Architecture)
		}
		wanted[f.Architecture], wanted[f.String()] = true, true
		for i, part := range strings.Split(f.URN, ":") {
			if isHere {
				a.set(part, join(in(f), generations()[2-f.Generation], urnParts()[i])...)
			}
		}
	}
	if len(wanted) == 0 {
		return nil, errors.New("has no marketplace images")
	}
	for _, f := range d.All() {
		if f.Plan != "" && wanted[f.Architecture] && !wanted[f.String()] {
			a.doc.Delete(join(in(f), generations()[2-f.Generation])...)
			if (cursor{node: d.doc.Root().Get(in(f)...)}).isEmpty() {
				a.doc.Delete(in(f)...)
			}
		}
	}
	return a.notes, a.err
}
