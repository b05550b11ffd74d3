package stream_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func TestParseMeta(t *testing.T) {
	want := stream.Meta{
		Stream:  "stable",
		Release: "44.20260721.3.0",
		Arch:    "x86_64",
		Built:   "2026-07-21T10:00:00Z",
		Images: map[string]stream.Image{
			"azure": {
				Path: "ours-44.20260721.3.0-azure.x86_64.vhd.xz", Format: "vhd.xz",
				Sha256: strings.Repeat("c0", 32), UncompressedSha256: strings.Repeat("c1", 32),
			},
			"azurestack": {
				Path: "ours-44.20260721.3.0-azurestack.x86_64.vhd.xz", Format: "vhd.xz",
				Sha256: strings.Repeat("c2", 32), UncompressedSha256: strings.Repeat("c3", 32),
			},
		},
	}
	if diff := cmp.Diff(want, meta(t, testdata(t, "meta-fcos.json"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseMetaNames(t *testing.T) {
	in := testdata(t, "meta-fcos.json")
	tests := []struct {
		name            string
		in              []byte
		stream, release string
		notes           []string
	}{
		{"stream from the ref", edit(t, edit(t, in, nil, "coreos-assembler.container-config-git"), "a/b/next", "ref"), "next", "44.20260721.3.0", nil},
		{"stream from the name", edit(t, edit(t, in, nil, "coreos-assembler.container-config-git"), nil, "ref"), "ours", "44.20260721.3.0", nil},
		{"no build ID", edit(t, edit(t, in, nil, "buildid"), "1.2", "ostree-version"), "stable", "1.2", nil},
		{"two releases", edit(t, in, "1.2", "ostree-version"), "stable", "44.20260721.3.0", []string{`the release is the build ID "44.20260721.3.0", not ostree-version "1.2"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := meta(t, tt.in)
			if m.Stream != tt.stream || m.Release != tt.release {
				t.Errorf("stream %q, release %q; want %q, %q", m.Stream, m.Release, tt.stream, tt.release)
			}
			if diff := cmp.Diff(tt.notes, m.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseMetaRefuses(t *testing.T) {
	in := testdata(t, "meta-rhcos.json")
	digest := "want a SHA-256 of 64 hex digits in lower case"
	file := "want a path below the build's folder that ends in .vhd.xz, .vhd.gz, .vhd"
	tests := []struct {
		name  string
		value any
		at    string
		want  string
	}{
		{"no release", nil, "buildid", ""}, // ostree-version is still there
		{"release is a number", 9.8, "buildid", "buildid: is a number; want a string"},
		{"no architecture", nil, "coreos-assembler.basearch", "coreos-assembler.basearch is missing: is it the meta.json of a build?"},
		{"null image", "null", "images/azure", `images.azure.path: is missing; ` + file},
		{"no digest", nil, "images/azure/sha256", `images.azure.sha256: is missing; ` + digest},
		{"short digest", "abc", "images/azure/sha256", `images.azure.sha256: is "abc"; ` + digest},
		{"upper case", strings.Repeat("C0", 32), "images/azure/uncompressed-sha256", `images.azure."uncompressed-sha256": is "` + strings.Repeat("C0", 32) + `"; ` + digest},
		{"VHDX", "disk.vhdx.xz", "images/azure/path", `images.azure.path: is "disk.vhdx.xz"; ` + file},
		{"outside", "../disk.vhd", "images/azure/path", `images.azure.path: is "../disk.vhd"; ` + file},
		{"absolute", "/disk.vhd", "images/azure/path", `images.azure.path: is "/disk.vhd"; ` + file},
		{"blob by http", "http://h/x.vhd", "azure/url", `azure.url: is "http://h/x.vhd"; want https://HOST/PATH, without a query, which could be an access token`},
		{"blob with a token", "https://h/x.vhd?sig=a", "azure/url", `azure.url: is "https://h/x.vhd?sig=a"; want https://HOST/PATH, without a query, which could be an access token`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.value == "null" {
				tt.value = map[string]any{}
			}
			_, err := stream.ParseMeta(edit(t, in, tt.value, strings.Split(tt.at, "/")...))
			if tt.want == "" && err == nil {
				return
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestParseMetaWithoutAzure(t *testing.T) {
	tests := []struct{ in, want string }{
		{
			`{"buildid":"1","coreos-assembler.basearch":"x86_64","images":{"qemu":{},"aws":{}}}`,
			"has no image for Azure, only for: aws, qemu; build one (cosa osbuild azure)",
		},
		{
			`{"buildid":"1","coreos-assembler.basearch":"x86_64"}`,
			"has no image for Azure, only for: nothing; build one (cosa osbuild azure)",
		},
		{`{"stream":"stable","architectures":{}}`, "has neither buildid nor ostree-version: is it the meta.json of a build?"},
	}
	for _, tt := range tests {
		if _, err := stream.ParseMeta([]byte(tt.in)); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.in, err, tt.want)
		}
	}
}
