package stream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(stream.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("stream.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("stream.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// agree fails if the tool and the schema do not say the same about a document.
func agree(t testing.TB, schema *jsonschema.Schema, what string, doc []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	d, err := stream.ParseDocument(doc)
	if err != nil || isMarketplace(value) {
		return // stricter than JSON on purpose, or not a stream document
	}
	bySchema := schema.Validate(value)
	var byTool []string
	for _, p := range d.Verify() {
		if p.Schema {
			byTool = append(byTool, p.String())
		}
	}
	if (bySchema == nil) != (len(byTool) == 0) {
		t.Errorf("%s:\nthe schema says %v\nthe tool says %q\n%.2000s", what, bySchema, byTool, doc)
	}
}

func isMarketplace(value any) bool {
	root, _ := value.(map[string]any)
	if root["stream"] != nil || root["architectures"] != nil {
		return false
	}
	for _, v := range root {
		if arch, ok := v.(map[string]any); ok && len(arch) > 0 {
			if _, ok := arch["azure"]; ok {
				return true
			}
		}
	}
	return false
}

// TestSchemaAgrees breaks good documents in one place after the other, in
// every way that a value can be wrong, and asks both.
func TestSchemaAgrees(t *testing.T) {
	schema := compiled(t)
	wrong := []any{
		nil, 0, -1.5e300, true, "", " ", "x", "x:y", "é",
		[]any{},
		[]any{"x"},
		map[string]any{},
		map[string]any{"x": 1},
		map[string]any{"disk": map[string]any{}},
		"https://h", "https://h/", "https://h/a b", "https://h/%zz", "https://h/%2F", "https://h:99999/x", "https://h:999999/x", "https://u@h/x", "HTTPS://h/x", "https://h/x\n",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("A", 64), strings.Repeat("a", 65), strings.Repeat("a", 64) + "\n",
	}
	for name, twin := range map[string]string{ // an architecture that has nothing the other has not, left out for time
		"fcos.json": "x86_64", "rhcos.json": "aarch64", "draft-url.json": "", "draft-private.json": "", "draft-image.json": "",
	} {
		in := testdata(t, name)
		agree(t, schema, name, in)
		var root map[string]any
		if err := json.Unmarshal(in, &root); err != nil {
			t.Fatal(err)
		}
		delete(root["architectures"].(map[string]any), twin)
		places := 0
		walk(root, nil, func(at []string, set func(v any, remove bool)) {
			places++
			set(nil, true)
			agree(t, schema, fmt.Sprintf("%s without %q", name, at), encode(t, root))
			for _, v := range wrong {
				set(v, false)
				agree(t, schema, fmt.Sprintf("%s with %q = %v", name, at, v), encode(t, root))
			}
		})
		if places < 4 {
			t.Errorf("%s: only %d places tried", name, places)
		}
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// walk visits every member of every object, and puts it back afterwards.
func walk(m map[string]any, at []string, visit func(at []string, set func(v any, remove bool))) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		old := m[name]
		here := append(slices.Clone(at), name)
		visit(here, func(v any, remove bool) {
			if m[name] = v; remove {
				delete(m, name)
			}
		})
		m[name] = old
		if inner, ok := old.(map[string]any); ok {
			walk(inner, here, visit)
		}
	}
}
