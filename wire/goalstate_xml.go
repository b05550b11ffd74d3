package wire

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// rootElement is the goal state's root. Documents of all three versions that
// were seen (2010-12-15, 2012-11-30, 2015-04-05) have it, in no namespace.
const rootElement = "GoalState"

// What encoding/xml makes of a document can be twenty times as large as the
// document: it keeps the attributes of a tag and all open elements, slices of
// structs, and texts up to three times. So all are bounded. Real goal states have
// six levels, some forty elements, tags of a hundred bytes, and 4 KiB in all.
const (
	maxToken    = 8 << 10  // bytes of a tag, a comment, or a text between two
	maxText     = 64 << 10 // bytes of all texts together
	maxElements = 2_000
	maxDepth    = 32
)

// The elements that a check-in needs, by their path. Elements of the same name
// elsewhere do not match. All fields are slices, because encoding/xml keeps the
// last of several elements in a plain field, and the first one is wanted.
type (
	goalStateElement struct {
		Incarnations []string           `xml:"Incarnation"`
		Containers   []containerElement `xml:"Container"`
	}
	containerElement struct {
		IDs   []string      `xml:"ContainerId"`
		Roles []roleElement `xml:"RoleInstanceList>RoleInstance"`
	}
	roleElement struct {
		IDs []string `xml:"InstanceId"`
	}
)

// decodeGoalState returns the document's root, once its end was seen.
func decodeGoalState(r io.Reader) (goalStateElement, error) {
	in := &tokenReader{Reader: bufio.NewReader(r)}
	raw := xml.NewDecoder(in)
	raw.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("encoding is %q, want utf-8", charset)
	}
	dec := xml.NewTokenDecoder(&plainTokens{Decoder: raw, in: in})
	var doc goalStateElement
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return doc, errors.New("no root element")
		}
		if err != nil {
			return doc, err
		}
		switch t := token.(type) {
		case xml.CharData:
			if text := strings.Trim(string(t), "\ufeff \t\r\n"); text != "" {
				return doc, fmt.Errorf("%.*q is before the root element", maxExcerpt, text)
			}
		case xml.StartElement:
			if t.Name.Local != rootElement {
				return doc, fmt.Errorf("root element is %q, want %q", t.Name.Local, rootElement)
			}
			return doc, dec.DecodeElement(&doc, &t)
		}
	}
}

// tokenReader is what the decoder reads from, byte by byte.
type tokenReader struct {
	*bufio.Reader
	left int // bytes that the token may still have
}

func (r *tokenReader) ReadByte() (byte, error) {
	if r.left == 0 {
		return 0, fmt.Errorf("a tag or a text of more than %d bytes", maxToken)
	}
	r.left--
	return r.Reader.ReadByte()
}

// plainTokens refuses <!DOCTYPE ...> wherever it stands. A goal state has
// none; a proxy's error page does, and so does a document with entities of its
// own (encoding/xml would not expand them, but there is no reason to read on).
// And it refuses elements that are nested too deep, or too many, and more text
// than there can be.
type plainTokens struct {
	*xml.Decoder
	in                    *tokenReader
	depth, elements, text int
}

func (d *plainTokens) Token() (xml.Token, error) {
	d.in.left = maxToken
	token, err := d.RawToken()
	switch t := token.(type) {
	case xml.Directive:
		return nil, fmt.Errorf("document type declaration %.*q refused", maxExcerpt, "<!"+string(t)+">")
	case xml.CharData:
		d.text += len(t)
	case xml.StartElement:
		d.depth++
		d.elements++
	case xml.EndElement:
		d.depth--
	}
	switch {
	case d.depth > maxDepth:
		return nil, fmt.Errorf("elements nested more than %d deep", maxDepth)
	case d.elements > maxElements:
		return nil, fmt.Errorf("more than %d elements", maxElements)
	case d.text > maxText:
		return nil, fmt.Errorf("more than %d bytes of text", maxText)
	}
	return token, err
}
