package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Bounds of what Parse takes. A published stream document has about 100 kB,
// a few thousand values and ten levels.
const (
	MaxSize   = 16 << 20
	MaxValues = 100_000
	MaxDepth  = 100
)

// CheckText refuses what readers of text disagree about: a byte order mark,
// and bytes that are not UTF-8. It also refuses what is longer than MaxSize.
func CheckText(in []byte) error {
	if len(in) > MaxSize {
		return fmt.Errorf("is longer than %d MiB: not a document of this kind", MaxSize>>20)
	}
	if bytes.HasPrefix(in, []byte("\xef\xbb\xbf")) {
		return errors.New("begins with a byte order mark: remove the first three bytes (tail -c +4)")
	}
	if !utf8.Valid(in) {
		i := bytes.IndexRune(in, utf8.RuneError)
		return fmt.Errorf("%s: byte 0x%02x is not UTF-8: convert the file to UTF-8 (iconv)", place(in, i), in[i])
	}
	return nil
}

// Parse reads one JSON document. It refuses what JSON readers disagree about:
// what CheckText refuses, and a member's name given twice in one object. An
// error says where, and what to do about it.
func Parse(in []byte) (*Doc, error) {
	if err := CheckText(in); err != nil {
		return nil, err
	}
	if len(bytes.Trim(in, "\t\r\n ")) == 0 {
		return nil, errors.New("is empty: want a JSON object")
	}
	// hujson allows comments and trailing commas, and has no limits.
	var raw json.RawMessage
	if err := json.Unmarshal(in, &raw); err != nil {
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("%s: not JSON: %w", place(in, int(e.Offset)-1), err)
		}
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	// Every value but the first follows a comma or opens a container.
	if bytes.Count(in, []byte(","))+bytes.Count(in, []byte("["))+bytes.Count(in, []byte("{")) >= MaxValues {
		return nil, fmt.Errorf("has more than %d values: not a document of this kind", MaxValues)
	}
	root, err := hujson.Parse(bytes.Clone(in))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	d := &Doc{root: root}
	if err := check(in, &d.root, 0); err != nil {
		return nil, err
	}
	if !d.Root().IsObject() {
		return nil, fmt.Errorf("holds %s: want a JSON object", d.Root().Kind())
	}
	d.style = styleOf(&d.root)
	return d, nil
}

// check refuses names that are twice in one object, and a value that is too
// deep in others.
func check(in []byte, v *hujson.Value, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%s: more than %d levels deep: not a document of this kind", place(in, v.StartOffset), MaxDepth)
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		seen := make(map[string]bool, len(c.Members))
		for i := range c.Members {
			m := &c.Members[i]
			name := text(m.Name.Value)
			if seen[name] {
				return fmt.Errorf("%s: %.130q is here twice in one object, and readers disagree which one counts: remove one",
					place(in, m.Name.StartOffset), name)
			}
			seen[name] = true
			if err := check(in, &m.Value, depth+1); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i := range c.Elements {
			if err := check(in, &c.Elements[i], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// place says where byte i is, counting from one as editors do.
func place(in []byte, i int) string {
	before := in[:max(0, min(i, len(in)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}
