package jsontree_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// FuzzSet: what Parse takes, Bytes gives back; and after a change the document
// says what it said, except for the one value, for every reader.
func FuzzSet(f *testing.F) {
	f.Add([]byte(odd), "a", "b", "x")
	f.Add([]byte("{\n  \"a\": {\"b\": null},\r\n\t\"c\":[]}"), "a", "b", "<>\u2028")
	f.Add([]byte(`{"a":{}}`), "a", "", "")
	f.Fuzz(func(t *testing.T, in []byte, first, second, value string) {
		d, err := jsontree.Parse(in)
		if err != nil {
			return
		}
		if !json.Valid(in) {
			t.Fatal("took what is not JSON")
		}
		if got := d.Bytes(); !bytes.Equal(got, in) {
			t.Fatalf("%q became %q", in, got)
		}
		if !utf8.ValidString(first) || !utf8.ValidString(second) || !utf8.ValidString(value) {
			return // JSON cannot carry it
		}
		before := decode(t, in)
		if err := d.Set(value, first, second); err != nil {
			return
		}
		out := d.Bytes()
		after := decode(t, out)
		again, err := jsontree.Parse(out)
		if err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		if got, _ := again.Root().Get(first, second).Text(); got != value {
			t.Fatalf("set %q, got %q from %q", value, got, out)
		}
		inner, _ := before[first].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		inner[second] = value
		before[first] = inner
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", in, out)
		}
		d.Delete(first, second)
		if !json.Valid(d.Bytes()) {
			t.Fatalf("%q became %q", in, d.Bytes())
		}
	})
}

func decode(t *testing.T, in []byte) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(in))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", in, err)
	}
	return v
}
