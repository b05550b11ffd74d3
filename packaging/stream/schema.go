package stream

import _ "embed" // for the schema

// Schema is the JSON Schema (draft 2020-12) of a stream document. A document
// is valid under it exactly if Verify finds no Problem whose Schema is set.
//
//go:embed stream.schema.json
var Schema string
