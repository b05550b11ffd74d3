package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Bounds of what Parse takes. A published stream document has about 100 kB,
// a few thousand values and ten levels.
const (
	MaxSize   = 16 << 20
	MaxValues = 100_000
	MaxDepth  = 100
)

// Parse reads one JSON document. It refuses what JSON readers disagree
// about: a byte order mark, text that is not UTF-8, and a member's name given
// twice in one object. An error says where, and what to do about it.
func Parse(in []byte) (*Doc, error) {
	if len(in) > MaxSize {
		return nil, fmt.Errorf("is longer than %d MiB: not a document of this kind", MaxSize>>20)
	}
	if bytes.HasPrefix(in, []byte("\xef\xbb\xbf")) {
		return nil, errors.New("begins with a byte order mark: remove the first three bytes (tail -c +4)")
	}
	if i := invalidUTF8(in); i >= 0 {
		return nil, fmt.Errorf("%s: byte 0x%02x is not UTF-8: convert the file to UTF-8 (iconv)", place(in, i), in[i])
	}
	if len(bytes.Trim(in, "\t\r\n ")) == 0 {
		return nil, errors.New("is empty: want a JSON object")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(in, &raw); err != nil {
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("%s: not JSON: %w", place(in, int(e.Offset)-1), err)
		}
		return nil, fmt.Errorf("not JSON: %w", err)
	}

	p := parser{in: in}
	head := p.space()
	root, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if !root.IsObject() {
		return nil, fmt.Errorf("holds %s: want a JSON object", root.Kind())
	}
	d := &Doc{root: root, head: head, tail: p.space()}
	d.style = styleOf(&d.root)
	return d, nil
}

func invalidUTF8(in []byte) int {
	if utf8.Valid(in) {
		return -1
	}
	i := 0
	for {
		r, size := utf8.DecodeRune(in[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
}

// place says where byte i is, counting from one as editors do.
func place(in []byte, i int) string {
	before := in[:max(0, min(i, len(in)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}
