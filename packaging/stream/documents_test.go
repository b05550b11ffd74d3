package stream_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func read(t *testing.T, in []byte, name string) *stream.Document {
	t.Helper()
	d, err := stream.ReadDocument(in, name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestReadDocument: the stream is the same in whatever it comes.
func TestReadDocument(t *testing.T) {
	want := testdata(t, "rhcos.json")
	crlf := bytes.ReplaceAll(testdata(t, "configmap.yaml"), []byte("\n"), []byte("\r\n"))
	noDefault := edit(t, testdata(t, "configmap.json"), nil, "data", "stream")
	tests := []struct {
		name   string
		in     []byte
		stream string
		place  string // of the best image for x86_64
	}{
		{"stream", want, "", ""},
		{"JSON", testdata(t, "configmap.json"), "", "data.stream | fromjson | ."},
		{"JSON, by name", testdata(t, "configmap.json"), "rhel-9", `data.streams | fromjson | ."rhel-9".`},
		{"JSON without a default", noDefault, "rhel-9", `data.streams | fromjson | ."rhel-9".`},
		{"YAML", testdata(t, "configmap.yaml"), "", "data.stream | fromjson | ."},
		{"YAML, by name", testdata(t, "configmap.yaml"), "rhel-9", `data.streams | fromjson | ."rhel-9".`},
		{"YAML with CRLF", crlf, "", "data.stream | fromjson | ."},
		{"YAML with a document marker", append([]byte("---\n# from oc\n"), testdata(t, "configmap.yaml")...), "", "data.stream | fromjson | ."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := read(t, tt.in, tt.stream)
			if problems := d.Verify(); len(problems) > 0 {
				t.Errorf("verify: %v", problems)
			}
			found, _, err := d.Lookup(stream.Query{Arch: "x86_64"})
			if err != nil {
				t.Fatal(err)
			}
			if want := tt.place + `architectures.x86_64."rhel-coreos-extensions".marketplace.azure."no-purchase-plan".hyperVGen2`; found[0].Place != want {
				t.Errorf("place %s\nwant  %s", found[0].Place, want)
			}
			for _, name := range []string{"disk.vhd", "disk.vhd.gz"} {
				if digests := d.Digests("x86_64", name); len(digests) != 1 || !strings.HasPrefix(digests[0].Place, tt.place+"architectures.x86_64.") {
					t.Errorf("digests of %s: %+v", name, digests)
				}
			}
		})
	}
	one := edit(t, noDefault, `{"rhel-10":`+string(want)+`}`, "data", "streams")
	if d := read(t, one, ""); d.Verify() != nil || !bytes.Contains(d.Bytes(), []byte("9.8.20260428-0")) {
		t.Errorf("the only stream is not taken: %.100q", d.Bytes())
	}
}

func TestReadDocumentRefuses(t *testing.T) {
	config := testdata(t, "configmap.json")
	with := func(value any, name string) []byte { return edit(t, config, value, "data", name) }
	tests := []struct {
		name         string
		in           []byte
		stream, want string
	}{
		{"no such stream", config, "rhel-8", `is a ConfigMap without a stream "rhel-8"; --os-stream chooses one of: rhel-10, rhel-9`},
		{"no default", with(nil, "stream"), "", `is a ConfigMap without a stream "stream"; --os-stream chooses one of: rhel-10, rhel-9`},
		{"not a ConfigMap", testdata(t, "fcos.json"), "rhel-9", `is not a ConfigMap, so there is no stream "rhel-9" to choose`},
		{"broken stream", with(`{"stream":"a","stream":"b"}`, "stream"), "", `data.stream | fromjson: line 1, column 15: "stream" is here twice in one object, and readers disagree which one counts: remove one`},
		{"broken streams", with(`{`, "streams"), "", `data.streams: line 1, column 1: not JSON: unexpected end of JSON input`},
		{"broken stream of several", with(`{"a":[]}`, "streams"), "a", `data.streams | fromjson | .a: holds an array: want a JSON object`},
		{"another kind", []byte(`{"kind":"List","items":[]}`), "", `holds a Kubernetes List: want the stream document in it (for a ConfigMap: jq -r .data.stream)`},
		{"another kind in YAML", []byte("kind: List\nitems: []\n"), "", `holds a Kubernetes List: want a ConfigMap, or a stream document in JSON`},
		{"YAML with a name twice", []byte("kind: ConfigMap\ndata: {a: b, a: c}\n"), "", "not YAML of a ConfigMap: unmarshal errors:\n  line 2: mapping key \"a\" already defined at line 2"},
		{"YAML in Latin-1", []byte("kind: ConfigMap\ndata: \xe9\n"), "", "line 2, column 7: byte 0xe9 is not UTF-8: convert the file to UTF-8 (iconv)"},
		{"YAML with a BOM", []byte("\xef\xbb\xbfkind: ConfigMap\n"), "", "begins with a byte order mark: remove the first three bytes (tail -c +4)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := stream.ReadDocument(tt.in, tt.stream)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestMerge: the marketplace file's images replace the document's, and nothing
// else changes.
func TestMerge(t *testing.T) {
	d := document(t, testdata(t, "rhcos.json"))
	notes, err := d.Merge(document(t, testdata(t, "marketplace.json")))
	if err != nil || len(notes) > 0 {
		t.Fatalf("notes %q, error %v", notes, err)
	}
	var urns []string
	for _, f := range d.All() {
		if f.URN != "" {
			urns = append(urns, f.Architecture+" "+f.Plan+" "+f.URN)
		}
	}
	want := []string{
		"aarch64 no-purchase-plan ourpublisher:ouroffer:421-arm:9.8.20260401",
		"x86_64 no-purchase-plan ourpublisher:ouroffer:421-v2:9.8.20260401",
		"x86_64 no-purchase-plan ourpublisher:ouroffer:our_421:9.8.20260401",
		"x86_64 opp redhat:rh-opp-worker:rh-opp-worker:4.18.2025031114",
	}
	if diff := cmp.Diff(want, urns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Without their marketplaces both are the same, byte for byte.
	rest := func(doc []byte) string {
		d := string(edit(t, doc, nil, "architectures", "x86_64", "rhel-coreos-extensions", "marketplace"))
		if strings.Contains(d, "421-arm") {
			d = string(edit(t, []byte(d), nil, "architectures", "aarch64", "rhel-coreos-extensions", "marketplace"))
		}
		return d
	}
	if diff := cmp.Diff(rest(testdata(t, "rhcos.json")), rest(d.Bytes())); diff != "" {
		t.Errorf("something else changed (-want +got):\n%s", diff)
	}
	if before, after := strings.Split(string(testdata(t, "rhcos.json")), "\n"), strings.Split(string(d.Bytes()), "\n"); before[0] != after[0] || before[30] != after[42] {
		t.Errorf("the layout changed:\n%s", d.Bytes())
	}

	d = document(t, testdata(t, "fcos.json"))
	once := edit(t, testdata(t, "marketplace.json"), map[string]any{"azure": map[string]any{"ocp": map[string]any{"hyperVGen1": map[string]any{
		"publisher": "p", "offer": "o", "sku": "s", "version": "v",
	}}}}, "riscv64")
	notes, err = d.Merge(document(t, once))
	if want := []string{"the marketplace images of riscv64 are left out, as the document does not have that architecture"}; err != nil || cmp.Diff(want, notes) != "" {
		t.Errorf("notes %q, error %v", notes, err)
	}
}

func TestMergeRefuses(t *testing.T) {
	stream1, market := testdata(t, "rhcos.json"), testdata(t, "marketplace.json")
	tests := []struct {
		name       string
		into, from []byte
		want       string
	}{
		{"into a marketplace file", market, market, "is a marketplace file: want a stream document, into which --marketplace puts it"},
		{"nothing", stream1, testdata(t, "fcos.json"), "has no marketplace images"},
		{"a broken file", stream1, edit(t, market, 5, "x86_64", "azure", "opp", "hyperVGen2", "sku"), `cannot be relied on: x86_64.azure.opp.hyperVGen2.sku: is a number; want a name without blanks and colons`},
		{"into a broken document", edit(t, stream1, "x", "architectures", "x86_64", "rhel-coreos-extensions"), market, `architectures.x86_64.rhel-coreos-extensions is a string: want an object`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := document(t, tt.into).Merge(document(t, tt.from))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	if _, err := document(t, market).Add(meta(t, testdata(t, "meta-rhcos.json")), stream.AddOptions{}); err == nil {
		t.Error("a build was added to a marketplace file")
	}
}
