package stream_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// TestLookup has what openshift-install takes, of each document, and what the
// flags ask for instead.
func TestLookup(t *testing.T) {
	const (
		ext  = `architectures.x86_64."rhel-coreos-extensions".`
		free = ext + `marketplace.azure."no-purchase-plan".`
		ocp  = ext + `marketplace.azure.ocp.`
		vhd  = `architectures.x86_64.artifacts.azure.formats."vhd.gz".disk`
	)
	without := func(doc string, value any, at ...string) []byte {
		return edit(t, testdata(t, doc), value, append([]string{"architectures"}, at...)...)
	}
	noMarketplace := without("rhcos.json", nil, "x86_64", "rhel-coreos-extensions", "marketplace")
	noFree := func(generation string) []byte {
		return without("rhcos.json", nil, "x86_64", "rhel-coreos-extensions", "marketplace", "azure", "no-purchase-plan", generation)
	}
	tests := []struct {
		name   string
		doc    []byte
		q      stream.Query
		want   []string // places
		reason string
	}{
		{
			"marketplace, generation 2", testdata(t, "rhcos.json"),
			stream.Query{},
			[]string{free + "hyperVGen2"},
			"chose marketplace for x86_64 (no-purchase-plan, V2): openshift-install prefers a marketplace image without a purchase plan",
		},
		{
			"marketplace, generation 1", testdata(t, "rhcos.json"),
			stream.Query{Generation: 1},
			[]string{free + "hyperVGen1"},
			"chose marketplace for x86_64 (no-purchase-plan, V1): openshift-install prefers a marketplace image without a purchase plan",
		},
		{
			"confidential", testdata(t, "rhcos.json"),
			stream.Query{Confidential: true},
			[]string{ext + `"azure-disk"`},
			"chose disk for x86_64: openshift-install takes the blob for a confidential VM",
		},
		{
			"no marketplace", noMarketplace,
			stream.Query{},
			[]string{ext + `"azure-disk"`},
			"chose disk for x86_64: there is no generation 2 marketplace image without a purchase plan",
		},
		{
			"generation 1 alone is not looked at", noFree("hyperVGen2"),
			stream.Query{Generation: 1},
			[]string{ext + `"azure-disk"`},
			"chose disk for x86_64: there is no generation 2 marketplace image without a purchase plan",
		},
		{
			"generation 1 alone, asked for", noFree("hyperVGen2"),
			stream.Query{Generation: 1, Kind: stream.KindMarketplace},
			[]string{free + "hyperVGen1"},
			"chose marketplace for x86_64 (no-purchase-plan, V1): as asked for",
		},
		{
			"paid plans only", without("rhcos.json", nil, "x86_64", "rhel-coreos-extensions", "marketplace", "azure", "no-purchase-plan"),
			stream.Query{},
			[]string{ext + `"azure-disk"`},
			"chose disk for x86_64: there is no generation 2 marketplace image without a purchase plan",
		},
		{
			"plan", testdata(t, "rhcos.json"),
			stream.Query{Plan: "ocp"},
			[]string{ocp + "hyperVGen2"},
			"chose marketplace for x86_64 (ocp, V2): as asked for",
		},
		{
			"plan and generation", testdata(t, "rhcos.json"),
			stream.Query{Plan: "ocp", Generation: 1},
			[]string{ocp + "hyperVGen1"},
			"chose marketplace for x86_64 (ocp, V1): as asked for",
		},
		{
			"blob", testdata(t, "rhcos.json"),
			stream.Query{Kind: stream.KindDisk},
			[]string{ext + `"azure-disk"`},
			"chose disk for x86_64: as asked for",
		},
		{
			"all", testdata(t, "rhcos.json"),
			stream.Query{All: true},
			[]string{free + "hyperVGen2", free + "hyperVGen1", ocp + "hyperVGen2", ocp + "hyperVGen1", ext + `"azure-disk"`, vhd},
			"chose marketplace for x86_64 (no-purchase-plan, V2): openshift-install prefers a marketplace image without a purchase plan",
		},
		{
			"all of a plan", testdata(t, "rhcos.json"),
			stream.Query{All: true, Plan: "ocp"},
			[]string{ocp + "hyperVGen2", ocp + "hyperVGen1"},
			"chose marketplace for x86_64 (ocp, V2): as asked for",
		},
		{
			"all of a generation", testdata(t, "rhcos.json"),
			stream.Query{All: true, Generation: 1},
			[]string{free + "hyperVGen1", ocp + "hyperVGen1", ext + `"azure-disk"`, vhd},
			"chose marketplace for x86_64 (no-purchase-plan, V1): openshift-install prefers a marketplace image without a purchase plan",
		},
		{
			"FCOS", testdata(t, "fcos.json"),
			stream.Query{},
			[]string{`architectures.x86_64.artifacts.azure.formats."vhd.xz".disk`},
			"chose vhd for x86_64: there is no marketplace image without a purchase plan, and no blob",
		},
		{
			"Azure Stack", testdata(t, "fcos.json"),
			stream.Query{Platform: "azurestack"},
			[]string{`architectures.x86_64.artifacts.azurestack.formats."vhd.xz".disk`},
			"chose Azure Stack vhd for x86_64: there is no marketplace image without a purchase plan, and no blob",
		},
		{
			"marketplace file", testdata(t, "marketplace.json"),
			stream.Query{},
			[]string{`x86_64.azure."no-purchase-plan".hyperVGen2`},
			"chose marketplace for x86_64 (no-purchase-plan, V2): openshift-install prefers a marketplace image without a purchase plan",
		},
		{
			"draft with a URL", testdata(t, "draft-url.json"),
			stream.Query{},
			[]string{"architectures.x86_64.azure.url"},
			"chose disk for x86_64 (draft): the document is of an early draft of the schema",
		},
		{
			"draft with a private section", testdata(t, "draft-private.json"),
			stream.Query{Kind: stream.KindDisk},
			[]string{`architectures.x86_64."rhcos-4.8-private".azure.url`},
			"chose disk for x86_64 (draft): as asked for",
		},
		{
			"draft with an image", testdata(t, "draft-image.json"),
			stream.Query{},
			[]string{"architectures.x86_64.images.azure.image"},
			"chose marketplace for x86_64 (draft): the document is of an early draft of the schema",
		},
		{
			"a draft's image is no match for a blob", without("rhcos.json", "A:b:c:latest", "x86_64", "images"),
			stream.Query{Kind: stream.KindDisk},
			[]string{ext + `"azure-disk"`},
			"chose disk for x86_64: as asked for",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.q.Arch = "x86_64"
			found, reason, err := document(t, tt.doc).Lookup(tt.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, f.Place)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if reason != tt.reason {
				t.Errorf("reason %q\nwant   %q", reason, tt.reason)
			}
		})
	}
}

func TestFound(t *testing.T) {
	const blob = "https://ours.blob.core.windows.net/imagebucket/"
	tests := []struct {
		doc  string
		q    stream.Query
		want stream.Found
	}{
		{"rhcos.json", stream.Query{Arch: "x86_64"}, stream.Found{
			Kind: "marketplace", Release: "9.6.20251015", URN: "ourpublisher:ouroffer:420-v2:9.6.20251015", Plan: "no-purchase-plan", Generation: 2,
			Schema: "published", Place: `architectures.x86_64."rhel-coreos-extensions".marketplace.azure."no-purchase-plan".hyperVGen2`,
		}},
		{"rhcos.json", stream.Query{Arch: "aarch64"}, stream.Found{
			Kind: "disk", Release: "9.8.20260428-0", URL: blob + "ours-9.8.20260428-0-azure.aarch64.vhd",
			Schema: "published", Place: `architectures.aarch64."rhel-coreos-extensions"."azure-disk"`,
		}},
		{"rhcos.json", stream.Query{Arch: "aarch64", Kind: stream.KindVHD}, stream.Found{
			Kind: "vhd", Release: "9.8.20260428-0", Format: "vhd.gz",
			Location: "https://mirror.example.com/art/storage/prod/streams/rhel-9.8/builds/9.8.20260428-0/aarch64/ours-9.8.20260428-0-azure.aarch64.vhd.gz",
			Sha256:   strings.Repeat("1", 64), UncompressedSha256: strings.Repeat("2", 64),
			Schema: "published", Place: `architectures.aarch64.artifacts.azure.formats."vhd.gz".disk`,
		}},
		{"draft-private.json", stream.Query{Arch: "x86_64"}, stream.Found{
			Kind: "disk", Release: "4.8", URL: blob + "ours-48.83.202102230316-0-azure.x86_64.vhd",
			Schema: "draft", Place: `architectures.x86_64."rhcos-4.8-private".azure.url`,
		}},
		{"draft-image.json", stream.Query{Arch: "x86_64"}, stream.Found{
			Kind: "marketplace", Release: "latest", URN: "Ours:OurOS:stable:latest",
			Schema: "draft", Place: "architectures.x86_64.images.azure.image",
		}},
	}
	for _, tt := range tests {
		tt.want.Architecture, tt.want.Platform = tt.q.Arch, "azure"
		found, _, err := document(t, testdata(t, tt.doc)).Lookup(tt.q)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]stream.Found{tt.want}, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.doc, diff)
		}
	}
}

func TestLookupNotFound(t *testing.T) {
	fcos, rhcos := testdata(t, "fcos.json"), testdata(t, "rhcos.json")
	const has = "marketplace for x86_64 (no-purchase-plan, V2), marketplace for x86_64 (no-purchase-plan, V1), marketplace for x86_64 (ocp, V2), " +
		"marketplace for x86_64 (ocp, V1), disk for aarch64, disk for x86_64, vhd for aarch64, vhd for x86_64"
	tests := []struct {
		name string
		doc  []byte
		q    stream.Query
		want string
	}{
		{"no architecture", rhcos, stream.Query{Arch: "s390x"}, "the stream has no image for s390x; it has: " + has},
		{"no plan", rhcos, stream.Query{Arch: "x86_64", Plan: "opp", Generation: 1}, "the stream has no image for x86_64, plan opp, generation V1; it has: " + has},
		{
			"generation 2 alone, so openshift-install fails", edit(t, edit(t, rhcos, nil, "architectures", "aarch64"), nil,
				"architectures", "x86_64", "rhel-coreos-extensions", "marketplace", "azure", "no-purchase-plan", "hyperVGen1"),
			stream.Query{Arch: "x86_64", Generation: 1},
			"the stream has no image for x86_64, generation V1; it has: marketplace for x86_64 (no-purchase-plan, V2), " +
				"marketplace for x86_64 (ocp, V2), marketplace for x86_64 (ocp, V1), disk for x86_64, vhd for x86_64",
		},
		{
			"no kind", fcos,
			stream.Query{Arch: "aarch64", Kind: stream.KindDisk},
			"the stream has no disk for aarch64; it has: vhd for aarch64, vhd for x86_64, Azure Stack vhd for x86_64",
		},
		{
			"no platform", fcos,
			stream.Query{Arch: "aarch64", Platform: "azurestack"},
			"the stream has no Azure Stack image for aarch64; it has: vhd for aarch64, vhd for x86_64, Azure Stack vhd for x86_64",
		},
		{
			"draft only", testdata(t, "draft-url.json"),
			stream.Query{Arch: "aarch64", Kind: stream.KindVHD},
			"the stream has no vhd for aarch64; it has: disk for x86_64 (draft) (places with problems: 1; azure-stream verify names them)",
		},
		{
			"nothing", []byte(`{"stream":"s","architectures":{}}`),
			stream.Query{Arch: "x86_64", Kind: stream.KindMarketplace},
			"the stream has no marketplace for x86_64; it has: nothing for Azure at all",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := document(t, tt.doc).Lookup(tt.q)
			if _, ok := errors.AsType[*stream.NotFoundError](err); !ok || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestManyArchitectures: a document of the largest kind gets its answer in the
// time that it takes to read it, and a short one.
func TestManyArchitectures(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`{"stream":"s","architectures":{"a":{}`)
	for i := range 15_000 {
		fmt.Fprintf(&doc, `,"a%d":{"artifacts":{},"azure":{"url":"https://h/x"}}`, i)
	}
	doc.WriteString("}}")
	_, _, err := document(t, []byte(doc.String())).Lookup(stream.Query{Arch: "x86_64"})
	if err == nil || !strings.Contains(err.Error(), "disk for a10013 (draft) and 14980 more") || len(err.Error()) > 1000 {
		t.Errorf("got %.2000v", err)
	}
}

// TestBrokenIsNamed: an image is not handed out if its entry is broken, and
// neither is a worse one in its place; verify names the same place.
func TestBrokenIsNamed(t *testing.T) {
	const (
		ext    = `architectures.x86_64."rhel-coreos-extensions".`
		market = ext + "marketplace.azure"
		plans  = "no-purchase-plan, ocp, opp, oke, ocp-emea, opp-emea, oke-emea"
	)
	azure := []string{"x86_64", "rhel-coreos-extensions", "marketplace", "azure"}
	tests := []struct {
		name, doc string
		value     any
		at        []string
		want      string
	}{
		{"blob by http", "rhcos.json", "http://h/x", []string{"x86_64", "rhel-coreos-extensions", "azure-disk", "url"}, ext + `"azure-disk".url: is "http://h/x"; want https://HOST/PATH`},
		{"blob is a string", "rhcos.json", "https://h/x", []string{"x86_64", "rhel-coreos-extensions", "azure-disk"}, ext + `"azure-disk": is a string; want an object`},
		{"extensions are null", "rhcos.json", []int{}, []string{"x86_64", "rhel-coreos-extensions"}, `architectures.x86_64."rhel-coreos-extensions": is an array; want an object`},
		{"artifacts are a number", "fcos.json", 5, []string{"x86_64", "artifacts"}, `architectures.x86_64.artifacts: is a number; want an object`},
		{"VHD without release", "fcos.json", map[string]any{"formats": map[string]any{"vhd": map[string]any{}}}, []string{"x86_64", "artifacts", "azure"}, `architectures.x86_64.artifacts.azure.release: is missing; want a string that is not empty`},
		{"VHD without formats", "fcos.json", map[string]any{"release": "1", "formats": map[string]any{}}, []string{"x86_64", "artifacts", "azure"}, `architectures.x86_64.artifacts.azure.formats: has no image: run azure-stream add with the meta.json of x86_64`},
		{"misspelt plan", "rhcos.json", map[string]any{}, append(azure, "no-purchase-plam"), market + `."no-purchase-plam": is not a known purchase plan; want one of ` + plans},
		{"misspelt generation", "rhcos.json", map[string]any{}, append(azure, "no-purchase-plan", "hypervGen1"), market + `."no-purchase-plan".hypervGen1: is not a known generation; want one of hyperVGen2, hyperVGen1`},
		{"plan is an array", "rhcos.json", []int{}, append(azure, "no-purchase-plan"), market + `."no-purchase-plan": is an array; want an object`},
		{"image is a string", "rhcos.json", "a:b:c:d", append(azure, "no-purchase-plan", "hyperVGen2"), market + `."no-purchase-plan".hyperVGen2: is a string; want an object`},
		{"image without a SKU", "rhcos.json", map[string]any{"publisher": "a", "offer": "b", "version": "c"}, append(azure, "ocp", "hyperVGen2"), market + `.ocp.hyperVGen2.sku: is missing; want a name without blanks and colons`},
		{"marketplace is a string", "rhcos.json", "x", azure, market + `: is a string; want an object`},
		{"draft's URN with an empty part", "draft-image.json", "a::b:c", []string{"x86_64", "images", "azure", "image"}, `architectures.x86_64.images.azure.image: is "a::b:c"; want PUBLISHER:OFFER:SKU:VERSION`},
		{"draft's URL by http", "draft-private.json", "http://h/x", []string{"x86_64", "rhcos-4.8-private", "azure", "url"}, `architectures.x86_64."rhcos-4.8-private".azure.url: is "http://h/x"; want https://HOST/PATH`},
		{"in a marketplace file", "marketplace.json", map[string]any{}, []string{"x86_64", "azure", "free"}, `x86_64.azure.free: is not a known purchase plan; want one of ` + plans},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.doc != "marketplace.json" {
				tt.at = append([]string{"architectures"}, tt.at...)
			}
			d := document(t, edit(t, testdata(t, tt.doc), tt.value, tt.at...))
			found, _, err := d.Lookup(stream.Query{Arch: "x86_64"})
			if want := "cannot be relied on: " + tt.want; err == nil || err.Error() != want {
				t.Errorf("found %v\ngot  %v\nwant %s", found, err, want)
			}
			if !slices.ContainsFunc(d.Verify(), func(p stream.Problem) bool { return p.String() == tt.want }) {
				t.Errorf("verify says %v", d.Verify())
			}
		})
	}
}

func TestDigests(t *testing.T) {
	doc := document(t, edit(t, testdata(t, "fcos.json"), map[string]any{"disk": map[string]any{
		"location": "https://h/x.vhd", "sha256": strings.Repeat("e", 64),
	}}, "architectures", "x86_64", "artifacts", "azure", "formats", "vhd"))
	tests := []struct {
		arch, name string
		want       []string // first digits
	}{
		{"", "a/disk.vhd.xz", []string{"3", "7", "9"}},
		{"", "disk.vhd", []string{"4", "8", "e", "a"}},
		{"aarch64", "disk.vhd", []string{"4"}},
		{"", "disk.vhd.gz", nil},
		{"s390x", "disk.vhd", nil},
	}
	for _, tt := range tests {
		var got []string
		for _, d := range doc.Digests(tt.arch, tt.name) {
			got = append(got, d.Sha256[:1])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q, %q (-want +got):\n%s", tt.arch, tt.name, diff)
		}
	}
}
