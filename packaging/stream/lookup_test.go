package stream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func TestLookup(t *testing.T) {
	const (
		blob   = "https://ours.blob.core.windows.net/imagebucket/"
		mirror = "https://mirror.example.com/art/storage/prod/streams/rhel-9.8/builds/9.8.20260428-0/"
		ext    = `architectures.x86_64."rhel-coreos-extensions".`
		market = ext + "marketplace.azure."
	)
	found := func(kind stream.Kind, place, release string, more stream.Found) stream.Found {
		more.Kind, more.Place, more.Release = kind, place, release
		more.Architecture, _, _ = strings.Cut(strings.TrimPrefix(place, "architectures."), ".")
		more.Platform = "azure"
		if more.Schema == "" {
			more.Schema = "published"
		}
		return more
	}
	image := func(plan, sku, publisher, offer, version string, generation int) stream.Found {
		quoted := map[bool]string{true: `"no-purchase-plan"`, false: plan}[plan == "no-purchase-plan"]
		place := market + quoted + ".hyperVGen" + map[int]string{1: "1", 2: "2"}[generation]
		return found("marketplace", place, version, stream.Found{
			URN: strings.Join([]string{publisher, offer, sku, version}, ":"), Plan: plan, Generation: generation,
		})
	}
	tests := []struct {
		name, doc string
		q         stream.Query
		want      []stream.Found
	}{
		{
			"best of RHCOS", "rhcos.json",
			stream.Query{Arch: "x86_64"},
			[]stream.Found{found("disk", ext+`"azure-disk"`, "9.8.20260428-0", stream.Found{URL: blob + "ours-9.8.20260428-0-azure.x86_64.vhd"})},
		},
		{
			"RHCOS by file", "rhcos.json",
			stream.Query{Arch: "aarch64", Kind: stream.KindVHD},
			[]stream.Found{found("vhd", `architectures.aarch64.artifacts.azure.formats."vhd.gz".disk`, "9.8.20260428-0", stream.Found{
				Format: "vhd.gz", Location: mirror + "aarch64/ours-9.8.20260428-0-azure.aarch64.vhd.gz",
				Sha256: strings.Repeat("1", 64), UncompressedSha256: strings.Repeat("2", 64),
			})},
		},
		{
			"marketplace, free and generation 2 first", "rhcos.json",
			stream.Query{Arch: "x86_64", Kind: stream.KindMarketplace},
			[]stream.Found{
				image("no-purchase-plan", "420-v2", "ourpublisher", "ouroffer", "9.6.20251015", 2),
				image("no-purchase-plan", "our_420", "ourpublisher", "ouroffer", "9.6.20251015", 1),
				image("ocp", "rh-ocp-worker", "redhat", "rh-ocp-worker", "4.18.2025031114", 2),
				image("ocp", "rh-ocp-worker-gen1", "redhat", "rh-ocp-worker", "4.18.2025031114", 1),
			},
		},
		{
			"draft with a URL", "draft-url.json",
			stream.Query{Arch: "x86_64"},
			[]stream.Found{found("disk", "architectures.x86_64.azure.url", "", stream.Found{
				Schema: "draft", URL: blob + "ours-46.82.202011260640-0-azure.x86_64.vhd",
			})},
		},
		{
			"draft with a private section", "draft-private.json",
			stream.Query{Arch: "x86_64", Kind: stream.KindDisk},
			[]stream.Found{found("disk", `architectures.x86_64."rhcos-4.8-private".azure.url`, "4.8", stream.Found{
				Schema: "draft", URL: blob + "ours-48.83.202102230316-0-azure.x86_64.vhd",
			})},
		},
		{
			"draft with an image", "draft-image.json",
			stream.Query{Arch: "x86_64"},
			[]stream.Found{found("marketplace", "architectures.x86_64.images.azure.image", "latest", stream.Found{
				Schema: "draft", URN: "Ours:OurOS:stable:latest",
			})},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := document(t, testdata(t, tt.doc)).Lookup(tt.q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupNotFound(t *testing.T) {
	fcos, rhcos := testdata(t, "fcos.json"), testdata(t, "rhcos.json")
	tests := []struct {
		name string
		doc  []byte
		q    stream.Query
		want string
	}{
		{
			"no architecture", rhcos,
			stream.Query{Arch: "s390x"},
			"the stream has no Azure disk for s390x; it has: disk for aarch64, disk for x86_64, marketplace for x86_64, vhd for aarch64, vhd for x86_64",
		},
		{
			"no kind", fcos,
			stream.Query{Arch: "aarch64", Kind: stream.KindDisk},
			"the stream has no directly bootable Azure disk for aarch64; it has: vhd for aarch64, vhd for x86_64, Azure Stack vhd for x86_64",
		},
		{
			"no platform", fcos,
			stream.Query{Arch: "aarch64", Platform: "azurestack"},
			"the stream has no Azure Stack disk for aarch64; it has: vhd for aarch64, vhd for x86_64, Azure Stack vhd for x86_64",
		},
		{
			"draft only", testdata(t, "draft-url.json"),
			stream.Query{Arch: "x86_64", Kind: stream.KindVHD},
			"the stream has no Azure VHD for x86_64; it has: disk for x86_64 (draft) (places that break the schema: 1; azure-stream verify names them)",
		},
		{
			"nothing", []byte(`{"stream":"s","architectures":{}}`),
			stream.Query{Arch: "x86_64", Kind: stream.KindMarketplace},
			"the stream has no Azure marketplace image for x86_64; it has: nothing for Azure at all",
		},
		{
			"of another type", edit(t, fcos, 5, "architectures", "x86_64", "artifacts", "azure"),
			stream.Query{Arch: "x86_64"},
			"the stream has no Azure disk for x86_64; it has: vhd for aarch64, Azure Stack vhd for x86_64 (places that break the schema: 1; azure-stream verify names them)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := document(t, tt.doc).Lookup(tt.q)
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
	for i := range 20_000 {
		fmt.Fprintf(&doc, `,"a%d":{"artifacts":{},"azure":{"url":"https://h/x"}}`, i)
	}
	doc.WriteString("}}")
	_, err := document(t, []byte(doc.String())).Lookup(stream.Query{Arch: "x86_64"})
	if err == nil || !strings.Contains(err.Error(), "disk for a19 (draft) and 19980 more") || len(err.Error()) > 1000 {
		t.Errorf("got %.2000v", err)
	}
}

// TestLookupRefuses: an image is not handed out if its entry is broken, and
// neither is a worse one in its place.
func TestLookupRefuses(t *testing.T) {
	doc := edit(t, testdata(t, "rhcos.json"), "http://h/x", "architectures", "x86_64", "rhel-coreos-extensions", "azure-disk", "url")
	_, err := document(t, doc).Lookup(stream.Query{Arch: "x86_64"})
	const want = `cannot be relied on: architectures.x86_64."rhel-coreos-extensions"."azure-disk".url: is "http://h/x"; want https://HOST/PATH`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
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
