package stream

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind is a way to get at an image.
type Kind string

// The kinds, best first.
const (
	KindDisk        Kind = "disk"        // a page blob, to make an image from as it is
	KindMarketplace Kind = "marketplace" // an image that is in Azure already
	KindVHD         Kind = "vhd"         // a file to download, decompress and upload
)

// Kinds returns the kinds, best first.
func Kinds() []Kind { return []Kind{KindDisk, KindMarketplace, KindVHD} }

// Found is an image that the document names.
type Found struct {
	Kind         Kind   `json:"kind"`
	Architecture string `json:"architecture"`
	Schema       string `json:"schema"`   // "published" or "draft"
	Place        string `json:"place"`    // where in the document, as jq takes it behind a dot
	Platform     string `json:"platform"` // of those in Platforms
	Release      string `json:"release,omitempty"`

	Format             string `json:"format,omitempty"`
	Location           string `json:"location,omitempty"`
	Signature          string `json:"signature,omitempty"`
	Sha256             string `json:"sha256,omitempty"`
	UncompressedSha256 string `json:"uncompressed-sha256,omitempty"`

	URL string `json:"url,omitempty"`

	URN        string `json:"urn,omitempty"`
	Plan       string `json:"plan,omitempty"`
	Generation int    `json:"generation,omitempty"` // of the VM, 1 or 2
}

// The values of Found.Schema.
const (
	published = "published"
	draft     = "draft"
)

// A Query says which images to look up.
type Query struct {
	Arch     string
	Kind     Kind   // empty: the first of Kinds that there is
	Platform string // of those in Platforms; empty: azure
}

// NotFoundError says that a document has nothing that answers a query.
type NotFoundError struct {
	Query    Query
	Has      []string // what it has instead
	Problems int      // how many places break the schema; what was meant may be there
}

// maxHas is how many of Has an error message names.
const maxHas = 20

func (e *NotFoundError) Error() string {
	what := map[Kind]string{
		KindDisk: "directly bootable Azure disk", KindMarketplace: "Azure marketplace image", KindVHD: "Azure VHD", "": "Azure disk",
	}[e.Query.Kind]
	if e.Query.Platform == "azurestack" {
		what = "Azure Stack disk"
	}
	has := "nothing for Azure at all"
	if n := len(e.Has); n > maxHas {
		has = fmt.Sprintf("%s and %d more", strings.Join(e.Has[:maxHas], ", "), n-maxHas)
	} else if n > 0 {
		has = strings.Join(e.Has, ", ")
	}
	s := fmt.Sprintf("the stream has no %s for %s; it has: %s", what, e.Query.Arch, has)
	if e.Problems > 0 {
		s += fmt.Sprintf(" (places that break the schema: %d; azure-stream verify names them)", e.Problems)
	}
	return s
}

// Lookup returns the images that answer a query, best first. If there are
// none the error is a *NotFoundError. An image whose entry breaks the schema
// is an error too.
func (d *Document) Lookup(q Query) ([]Found, error) {
	if q.Platform == "" {
		q.Platform = "azure"
	}
	all, problems := d.all()
	kinds := Kinds()
	if q.Kind != "" {
		kinds = []Kind{q.Kind}
	}
	for _, kind := range kinds {
		var found []Found
		for _, f := range all {
			if f.Kind == kind && f.Architecture == q.Arch && f.Platform == q.Platform {
				found = append(found, f)
			}
		}
		if len(found) == 0 {
			continue
		}
		for _, p := range problems {
			if slices.ContainsFunc(found, func(f Found) bool { return strings.HasPrefix(p.Path, f.Place+".") }) {
				return nil, fmt.Errorf("cannot be relied on: %s", p)
			}
		}
		return found, nil
	}
	missing := &NotFoundError{Query: q, Problems: len(problems)}
	seen := map[string]bool{}
	for _, f := range all {
		if has := f.String(); !seen[has] {
			seen[has] = true
			missing.Has = append(missing.Has, has)
		}
	}
	return nil, missing
}

// All returns every image that the document names for Azure, best kind first.
func (d *Document) All() []Found {
	all, _ := d.all()
	return all
}

func (d *Document) all() ([]Found, []Problem) {
	s, problems := d.Stream()
	return append(s.found(), d.drafts()...), problems
}

// String names what was found in a few words.
func (f Found) String() string {
	s := string(f.Kind) + " for " + f.Architecture
	if f.Platform == "azurestack" {
		s = "Azure Stack " + s
	}
	if f.Schema == draft {
		s += " (draft)"
	}
	return s
}
