// Package schematest is test support: it holds JSON output against its schema in
// docs/schema.
package schematest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Check fails the test unless what v is as JSON is as the schema in the file
// says, and has no field that the schema does not describe.
func Check(t testing.TB, file string, v any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(file, strict(doc)); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Errorf("%s: %v\n%s", file, err, out)
	}
}

// strict forbids fields that are not described, wherever a schema describes an
// object: others may read the schema as one that allows more to come.
func strict(doc any) any {
	switch d := doc.(type) {
	case map[string]any:
		for k, v := range d {
			d[k] = strict(v)
		}
		if d["type"] == "object" {
			d["additionalProperties"] = false
		}
	case []any:
		for i, v := range d {
			d[i] = strict(v)
		}
	}
	return doc
}
