package stream_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// publishedStream is a reader of its own, which knows the published schema
// and nothing else: it fails on any other member.
type publishedStream struct {
	Stream   string `json:"stream"`
	Metadata struct {
		LastModified string `json:"last-modified"`
		Generator    string `json:"generator"`
	} `json:"metadata"`
	Architectures map[string]struct {
		Artifacts map[string]struct {
			Release string `json:"release"`
			Formats map[string]struct {
				Disk, Kernel, Initramfs, Rootfs *struct {
					Location           string `json:"location"`
					Signature          string `json:"signature"`
					Sha256             string `json:"sha256"`
					UncompressedSha256 string `json:"uncompressed-sha256"`
				}
			} `json:"formats"`
		} `json:"artifacts"`
		Images     map[string]any `json:"images"`
		Extensions struct {
			AwsWinLi  any `json:"aws-winli"`
			AzureDisk *struct {
				Release string `json:"release"`
				URL     string `json:"url"`
			} `json:"azure-disk"`
			Marketplace any `json:"marketplace"`
		} `json:"rhel-coreos-extensions"`
	} `json:"architectures"`
}

// TestAddedIsRead: what add writes, lookup reads, verify passes, the schema
// allows, and a reader of the published schema understands.
func TestAddedIsRead(t *testing.T) {
	tests := []struct{ name, doc, meta string }{
		{"new FCOS", "", "meta-fcos.json"},
		{"new RHCOS", "", "meta-rhcos.json"},
		{"FCOS", "fcos.json", "meta-fcos.json"},
		{"RHCOS", "rhcos.json", "meta-rhcos.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := meta(t, testdata(t, tt.meta))
			d := stream.NewDocument()
			if tt.doc != "" {
				d = document(t, testdata(t, tt.doc))
			}
			if _, err := d.Add(m, stream.AddOptions{BaseURL: base}); err != nil {
				t.Fatal(err)
			}

			d = document(t, d.Bytes())
			agree(t, compiled(t), tt.name, d.Bytes())
			if tt.doc == "" {
				if problems := d.Verify(); len(problems) > 0 {
					t.Errorf("verify: %v", problems)
				}
			}
			found, _, err := d.Lookup(stream.Query{Arch: m.Arch, Kind: stream.KindVHD})
			if err != nil {
				t.Fatal(err)
			}

			var p publishedStream
			dec := json.NewDecoder(bytes.NewReader(d.Bytes()))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&p); err != nil {
				t.Fatal(err)
			}
			a := p.Architectures[m.Arch]
			img := m.Images["azure"]
			disk := a.Artifacts["azure"].Formats[img.Format].Disk
			want := stream.Found{
				Kind: "vhd", Architecture: m.Arch, Schema: "published", Platform: "azure", Place: found[0].Place,
				Release: a.Artifacts["azure"].Release, Format: img.Format, Location: disk.Location, Signature: disk.Signature,
				Sha256: img.Sha256, UncompressedSha256: img.UncompressedSha256,
			}
			if diff := cmp.Diff([]stream.Found{want}, found); diff != "" {
				t.Errorf("published reader and lookup (-want +got):\n%s", diff)
			}
			if a.Artifacts["azure"].Release != m.Release || disk.Location != base+"/"+img.Path || disk.Signature != disk.Location+".sig" {
				t.Errorf("release %q, location %q, signature %q", a.Artifacts["azure"].Release, disk.Location, disk.Signature)
			}
			if blob := a.Extensions.AzureDisk; m.DiskURL != "" && (blob == nil || blob.URL != m.DiskURL || blob.Release != m.Release) {
				t.Errorf("azure-disk is %+v, want %s", blob, m.DiskURL)
			}
		})
	}
}
