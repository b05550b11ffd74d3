package stream_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// The base URL of the tests, as the one of a public build has the release in it.
const base = "https://builds.example.org/prod/streams/stable/builds/44.20260721.3.0/x86_64"

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func document(t testing.TB, in []byte) *stream.Document {
	t.Helper()
	d, err := stream.ParseDocument(in)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func meta(t testing.TB, in []byte) stream.Meta {
	t.Helper()
	m, err := stream.ParseMeta(in)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edit returns JSON with one value replaced, or with nil removed, for tests
// that need a document with a mistake.
func edit(t testing.TB, in []byte, value any, at ...string) []byte {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(in, &root); err != nil {
		t.Fatal(err)
	}
	m := root
	for _, name := range at[:len(at)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			t.Fatalf("no object %q on the way to %q", name, at)
		}
		m = next
	}
	m[at[len(at)-1]] = value
	if value == nil {
		delete(m, at[len(at)-1])
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(out)
}
