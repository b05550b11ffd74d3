// Package stream reads and edits CoreOS stream metadata, the document that
// says where the images of a stream are, as far as Azure is concerned: it
// takes an image from the meta.json of its build into the document, finds an
// image in it, and says what is wrong with it.
//
// Document is the document as written: what the package does not know is kept
// in it.
package stream

// Platforms are the platforms of Azure, as artifacts are filed under them.
func Platforms() []string { return []string{"azure", "azurestack"} }

// Formats are the forms a disk for Azure comes in, best for a download first.
func Formats() []string { return []string{"vhd.xz", "vhd.gz", "vhd"} }

// FreePlan is the plan of the marketplace images that cost nothing beyond the
// VM. openshift-install uses these by default.
const FreePlan = "no-purchase-plan"

// Plans are the purchase plans of marketplace images.
func Plans() []string {
	return []string{FreePlan, "ocp", "opp", "oke", "ocp-emea", "opp-emea", "oke-emea"}
}

// generations are the names of a marketplace image's generations, best first.
func generations() []string { return []string{"hyperVGen2", "hyperVGen1"} }

// A Kind is a way to get at an image.
type Kind string

// The kinds, best first.
const (
	KindMarketplace Kind = "marketplace" // an image that is in Azure already
	KindDisk        Kind = "disk"        // a page blob, to make an image from as it is
	KindVHD         Kind = "vhd"         // a file to download, decompress and upload
)

// Kinds returns the kinds, best first.
func Kinds() []Kind { return []Kind{KindMarketplace, KindDisk, KindVHD} }

// Found is an image that the document names.
type Found struct {
	Kind         Kind   `json:"kind"`
	Architecture string `json:"architecture"` // as RPM names it
	Platform     string `json:"platform"`     // of those in Platforms
	Release      string `json:"release,omitempty"`

	// Of a KindVHD. Signature and UncompressedSha256 may be empty.
	Format             string `json:"format,omitempty"` // of those in Formats
	Location           string `json:"location,omitempty"`
	Signature          string `json:"signature,omitempty"`
	Sha256             string `json:"sha256,omitempty"`
	UncompressedSha256 string `json:"uncompressed-sha256,omitempty"`

	URL string `json:"url,omitempty"` // of a KindDisk

	// Of a KindMarketplace.
	URN        string `json:"urn,omitempty"`        // as the az command takes it
	Plan       string `json:"plan,omitempty"`       // of those in Plans
	Generation int    `json:"generation,omitempty"` // of the VM, 1 or 2

	Schema string `json:"schema"` // "published" or "draft"
	Place  string `json:"place"`  // where in the document, as jq takes it behind a dot
}

// The values of Found.Schema.
const (
	published = "published"
	draft     = "draft"
)

// String names what was found in a few words.
func (f Found) String() string {
	s := string(f.Kind) + " for " + f.Architecture
	if f.Plan != "" {
		s += " (" + f.Plan + ", V" + string(rune('0'+f.Generation)) + ")"
	}
	if f.Platform == "azurestack" {
		s = "Azure Stack " + s
	}
	if f.Schema == draft {
		s += " (draft)"
	}
	return s
}
