package stream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// TestEveryDocumentStaysTrue looks up, adds and merges in every document that
// the tests have, in every layout, and compares all that was not to change as
// it was written.
func TestEveryDocumentStaysTrue(t *testing.T) {
	adds, lookups := 0, 0
	for _, name := range []string{"fcos.json", "rhcos.json", "draft-url.json", "draft-private.json", "draft-image.json"} {
		for layout, doc := range layouts(t, testdata(t, name)) {
			for _, arch := range []string{"x86_64", "aarch64", "s390x"} {
				for _, q := range []stream.Query{{}, {All: true}, {Generation: 1}, {Confidential: true}, {Plan: "ocp"}, {Kind: stream.KindVHD}} {
					d := document(t, doc)
					q.Arch = arch
					if _, _, err := d.Lookup(q); err != nil && strings.Contains(err.Error(), "cannot be relied on") && !strings.HasPrefix(name, "draft") {
						t.Errorf("%s, %s: %v", name, layout, err)
					}
					if !bytes.Equal(d.Bytes(), doc) {
						t.Errorf("%s, %s: changed by a lookup", name, layout)
					}
					lookups++
				}
			}
			for _, m := range []string{"meta-fcos.json", "meta-rhcos.json"} {
				for _, o := range []stream.AddOptions{{}, {BaseURL: base}, {BaseURL: base, Unsigned: true}} {
					d := document(t, doc)
					if _, err := d.Add(meta(t, testdata(t, m)), o); err != nil {
						t.Fatal(err)
					}
					sameBut(t, name+", "+layout, doc, d.Bytes(), "/architectures/x86_64/artifacts/azure", "/architectures/x86_64/rhel-coreos-extensions/azure-disk")
					adds++
				}
			}
			d := document(t, doc)
			if _, err := d.Merge(document(t, testdata(t, "marketplace.json"))); err != nil {
				t.Fatal(err)
			}
			sameBut(t, name+", "+layout, doc, d.Bytes(), "/architectures/x86_64/rhel-coreos-extensions/marketplace", "/architectures/aarch64/rhel-coreos-extensions/marketplace")
			adds++
		}
	}
	t.Logf("%d adds and merges, %d lookups", adds, lookups)
}

// layouts returns a document as it is, and as others would write it.
func layouts(t *testing.T, doc []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"as it is": doc, "CRLF": bytes.ReplaceAll(doc, []byte("\n"), []byte("\r\n"))}
	var compact bytes.Buffer
	if err := json.Compact(&compact, doc); err != nil {
		t.Fatal(err)
	}
	all["one line"] = compact.Bytes()
	all["one line, wide"] = bytes.ReplaceAll(bytes.ReplaceAll(compact.Bytes(), []byte(`":`), []byte(`" : `)), []byte(`,"`), []byte(` , "`))
	for _, indent := range []string{" ", "    ", "\t", "        "} {
		var b bytes.Buffer
		if err := json.Indent(&b, doc, "", indent); err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("indent %q", indent)] = b.Bytes()
	}
	all["escaped"] = bytes.ReplaceAll(doc, []byte("/"), []byte(`\/`))
	all["with numbers"] = bytes.Replace(doc, []byte("{"), []byte(`{"x": [1.50e+02, -0, 123456789012345678901234567890, "\u00e9é", {"":null}],`), 1)
	return all
}

// sameBut compares the values of two documents as they are written, except for
// those below the given places.
func sameBut(t *testing.T, what string, before, after []byte, but ...string) {
	t.Helper()
	was, is := map[string]string{}, map[string]string{}
	spell(t, before, "", was)
	spell(t, after, "", is)
	allowed := func(place string) bool {
		for _, b := range but {
			if strings.HasPrefix(place, b) || strings.HasPrefix(b, place) {
				return true
			}
		}
		return false
	}
	for place, value := range was {
		if got, ok := is[place]; !allowed(place) && (!ok || got != value) {
			t.Errorf("%s: %s was %s and is %s", what, place, value, got)
		}
	}
	for place := range is {
		if _, ok := was[place]; !ok && !allowed(place) {
			t.Errorf("%s: %s is new", what, place)
		}
	}
}

// spell collects the values that are no objects, as written.
func spell(t *testing.T, in []byte, place string, all map[string]string) {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(in, &members) != nil || members == nil {
		all[place] = string(in)
		return
	}
	for name, value := range members {
		spell(t, value, place+"/"+name, all)
	}
}
