package stream_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// TestAddChangesNothingElse puts a build into documents of both shapes and
// compares line by line.
func TestAddChangesNothingElse(t *testing.T) {
	tests := []struct {
		name, doc, meta string
		opts            stream.AddOptions
		want            []string // the lines of the new document that are not in the old one
	}{
		{
			name: "FCOS", doc: "fcos.json", meta: "meta-fcos.json", opts: stream.AddOptions{BaseURL: base + "/"},
			want: []string{
				`"release": "44.20260721.3.0",`,
				`"location": "` + base + `/ours-44.20260721.3.0-azure.x86_64.vhd.xz",`,
				`"signature": "` + base + `/ours-44.20260721.3.0-azure.x86_64.vhd.xz.sig",`,
				`"sha256": "` + strings.Repeat("c0", 32) + `",`,
				`"uncompressed-sha256": "` + strings.Repeat("c1", 32) + `"`,
				`"release": "44.20260721.3.0",`,
				`"location": "` + base + `/ours-44.20260721.3.0-azurestack.x86_64.vhd.xz",`,
				`"signature": "` + base + `/ours-44.20260721.3.0-azurestack.x86_64.vhd.xz.sig",`,
				`"sha256": "` + strings.Repeat("c2", 32) + `",`,
				`"uncompressed-sha256": "` + strings.Repeat("c3", 32) + `"`,
			},
		},
		{
			name: "RHCOS", doc: "rhcos.json", meta: "meta-rhcos.json", opts: stream.AddOptions{BaseURL: base, Unsigned: true},
			want: []string{
				`"release": "9.8.20260512-0",`,
				`"location": "` + base + `/ours-9.8.20260512-0-azure.x86_64.vhd.gz",`,
				`"sha256": "` + strings.Repeat("d0", 32) + `",`,
				`"uncompressed-sha256": "` + strings.Repeat("d1", 32) + `"`,
				`"release": "9.8.20260512-0",`,
				`"url": "https://ours.blob.core.windows.net/imagebucket/ours-9.8.20260512-0-azure.x86_64.vhd"`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old := testdata(t, tt.doc)
			d := document(t, old)
			notes, err := d.Add(meta(t, testdata(t, tt.meta)), tt.opts)
			if err != nil || len(notes) > 0 {
				t.Fatalf("notes %q, error %v", notes, err)
			}
			var changed []string
			before, after := strings.Split(string(old), "\n"), strings.Split(string(d.Bytes()), "\n")
			if len(before) != len(after) {
				t.Fatalf("%d lines became %d", len(before), len(after))
			}
			for i := range before {
				if before[i] != after[i] {
					changed = append(changed, strings.TrimSpace(after[i]))
				}
			}
			if diff := cmp.Diff(tt.want, changed); diff != "" {
				t.Errorf("changed lines (-want +got):\n%s", diff)
			}
			first := string(d.Bytes())
			if _, err := d.Add(meta(t, testdata(t, tt.meta)), tt.opts); err != nil || string(d.Bytes()) != first {
				t.Errorf("adding it again changed something; error %v", err)
			}
		})
	}
}

func TestAddMakesADocument(t *testing.T) {
	d := stream.NewDocument()
	notes, err := d.Add(meta(t, testdata(t, "meta-rhcos.json")), stream.AddOptions{BaseURL: base})
	if err != nil || len(notes) > 0 {
		t.Fatalf("notes %q, error %v", notes, err)
	}
	want := `{
    "stream": "rhel-9.8",
    "metadata": {
        "last-modified": "2026-05-12T06:00:00Z"
    },
    "architectures": {
        "x86_64": {
            "artifacts": {
                "azure": {
                    "release": "9.8.20260512-0",
                    "formats": {
                        "vhd.gz": {
                            "disk": {
                                "location": "` + base + `/ours-9.8.20260512-0-azure.x86_64.vhd.gz",
                                "signature": "` + base + `/ours-9.8.20260512-0-azure.x86_64.vhd.gz.sig",
                                "sha256": "` + strings.Repeat("d0", 32) + `",
                                "uncompressed-sha256": "` + strings.Repeat("d1", 32) + `"
                            }
                        }
                    }
                }
            },
            "rhel-coreos-extensions": {
                "azure-disk": {
                    "release": "9.8.20260512-0",
                    "url": "https://ours.blob.core.windows.net/imagebucket/ours-9.8.20260512-0-azure.x86_64.vhd"
                }
            }
        }
    }
}
`
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAddDropsWhatIsStale: nothing of an older release may stay under the name
// of a newer one.
func TestAddDropsWhatIsStale(t *testing.T) {
	azure := `architectures.x86_64.artifacts.azure.formats.`
	tests := []struct {
		name, doc string
		opts      stream.AddOptions
		notes     []string
		want      string // of architectures.x86_64.artifacts.azure
	}{
		{
			name:  "another format and an old blob",
			doc:   `{"architectures":{"x86_64":{"artifacts":{"azure":{"release":"9.7","formats":{"vhd.xz":{},"vhd":{}}}},"rhel-coreos-extensions":{"azure-disk":{"release":"9.7"}}}}}`,
			opts:  stream.AddOptions{BaseURL: base, Unsigned: true},
			notes: []string{azure + `"vhd.xz" removed: it was of release "9.7"`, azure + `vhd removed: it was of release "9.7"`},
			want: `{"release":"9.8.20260512-0","formats":{"vhd.gz":{"disk":{"location":"` + base + `/ours-9.8.20260512-0-azure.x86_64.vhd.gz","sha256":"` +
				strings.Repeat("d0", 32) + `","uncompressed-sha256":"` + strings.Repeat("d1", 32) + `"}}}}`,
		},
		{
			name:  "another format of the same release stays",
			doc:   `{"architectures":{"x86_64":{"artifacts":{"azure":{"release":"9.8.20260512-0","formats":{"vhd.xz":{}}}}}}}`,
			opts:  stream.AddOptions{BaseURL: base, Unsigned: true},
			notes: nil,
			want: `{"release":"9.8.20260512-0","formats":{"vhd.xz":{},"vhd.gz":{"disk":{"location":"` + base + `/ours-9.8.20260512-0-azure.x86_64.vhd.gz","sha256":"` +
				strings.Repeat("d0", 32) + `","uncompressed-sha256":"` + strings.Repeat("d1", 32) + `"}}}}`,
		},
		{
			name: "no base URL, and the location was of another file",
			doc:  `{"architectures":{"x86_64":{"artifacts":{"azure":{"release":"9.7","formats":{"vhd.gz":{"disk":{"location":"https://h/9.7.vhd.gz","signature":"https://h/s"}}}}}}}}`,
			notes: []string{
				azure + `"vhd.gz".disk.location removed: it was of another file, "https://h/9.7.vhd.gz"`,
				azure + `"vhd.gz".disk.location not written, for want of a base URL`,
			},
			want: `{"release":"9.8.20260512-0","formats":{"vhd.gz":{"disk":{"sha256":"` +
				strings.Repeat("d0", 32) + `","uncompressed-sha256":"` + strings.Repeat("d1", 32) + `"}}}}`,
		},
		{
			name:  "no base URL, and the location is of this file",
			doc:   `{"architectures":{"x86_64":{"artifacts":{"azure":{"release":"9.8.20260512-0","formats":{"vhd.gz":{"disk":{"location":"https://h/ours-9.8.20260512-0-azure.x86_64.vhd.gz","mine":1.0}}}}}}}}`,
			notes: nil,
			want: `{"release":"9.8.20260512-0","formats":{"vhd.gz":{"disk":{"location":"https://h/ours-9.8.20260512-0-azure.x86_64.vhd.gz","mine":1.0,"sha256":"` +
				strings.Repeat("d0", 32) + `","uncompressed-sha256":"` + strings.Repeat("d1", 32) + `"}}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := document(t, []byte(tt.doc))
			m := meta(t, testdata(t, "meta-rhcos.json"))
			notes, err := d.Add(m, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if !strings.Contains(string(d.Bytes()), `"artifacts":{"azure":`+tt.want) {
				t.Errorf("got  %s\nwant %s", d.Bytes(), tt.want)
			}
		})
	}
}

func TestAddRefuses(t *testing.T) {
	tests := []struct{ name, doc, base, want string }{
		{"an array on the way", `{"architectures":[]}`, base, "architectures is an array: want an object"},
		{"a string on the way", `{"architectures":{"x86_64":{"artifacts":"x"}}}`, base, "architectures.x86_64.artifacts is a string: want an object"},
		{"http", `{}`, "http://example.org/", `base URL "http://example.org/": want https://HOST/PATH, without ? and #`},
		{"a password", `{}`, "https://me:secret@example.org/", `base URL "https://me:secret@example.org/": want https://HOST/PATH, without ? and #`},
		{"a token", `{}`, "https://example.org/?sig=x", `base URL "https://example.org/?sig=x": want https://HOST/PATH, without ? and #`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := document(t, []byte(tt.doc)).Add(meta(t, testdata(t, "meta-rhcos.json")), stream.AddOptions{BaseURL: tt.base})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestAddNotesAnOldBlob(t *testing.T) {
	d := document(t, testdata(t, "rhcos.json"))
	m := meta(t, edit(t, testdata(t, "meta-rhcos.json"), nil, "azure"))
	notes, err := d.Add(m, stream.AddOptions{BaseURL: base, Unsigned: true})
	want := []string{`architectures.x86_64."rhel-coreos-extensions"."azure-disk" stays at release "9.8.20260428-0": the meta.json has no azure.url`}
	if diff := cmp.Diff(want, notes); diff != "" || err != nil {
		t.Errorf("error %v, notes (-want +got):\n%s", err, diff)
	}
}
