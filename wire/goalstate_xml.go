package wire

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// rootElement is the goal state's root. Documents of all three versions that
// were seen (2010-12-15, 2012-11-30, 2015-04-05) have it, in no namespace.
const rootElement = "GoalState"

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
	raw := xml.NewDecoder(r)
	raw.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("encoding is %q, want utf-8", charset)
	}
	dec := xml.NewTokenDecoder(noDirectives{raw})
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

// noDirectives refuses <!DOCTYPE ...> wherever it stands. A goal state has
// none; a proxy's error page does, and so does a document with entities of its
// own (encoding/xml would not expand them, but there is no reason to read on).
type noDirectives struct{ *xml.Decoder }

func (d noDirectives) Token() (xml.Token, error) {
	token, err := d.RawToken()
	if directive, ok := token.(xml.Directive); ok {
		return nil, fmt.Errorf("document type declaration %.*q refused", maxExcerpt, "<!"+string(directive)+">")
	}
	return token, err
}
