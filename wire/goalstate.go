package wire

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

// maxID bounds each identifier of a goal state, in bytes. Real ones have about
// 40 ("<guid>._name"); agents in C keep them in buffers of 64.
const maxID = 256

// GoalState holds the three identifiers of a goal state that a health report
// must echo: it is answered with 410 Gone otherwise.
type GoalState struct {
	// Incarnation counts the goal states: decimal digits. It stays text, as it is
	// only ever sent back.
	Incarnation string
	// ContainerID is the machine's place on its host, usually a GUID. It can
	// change while the incarnation stays (a machine that was hibernated).
	ContainerID string
	// InstanceID is the machine's name in its deployment.
	InstanceID string
}

// ParseGoalState reads the document that GET /machine/?comp=goalstate answers
// with. It demands UTF-8 (a byte order mark is allowed), no document type
// declaration, a complete GoalState element in any namespace as the root, and
// in it a usable Incarnation, ContainerId and InstanceId: not empty, without
// control characters, at most 256 bytes. White space around them is dropped.
// Of several containers or role instances the first counts, as it does for
// every other agent.
//
// What follows the root element is not read. Whatever it is (padding, a second
// document), it cannot change what the complete element said, and no machine
// need stay in Creating for it.
//
// Every error is worth another request: a role instance, for one, can be
// missing for a moment (Azure/WALinuxAgent#2016). The caller bounds r.
func ParseGoalState(r io.Reader) (GoalState, error) {
	gs, err := parseGoalState(r)
	if err != nil {
		return GoalState{}, bounded.Error(fmt.Errorf("wire: goal state: %w", err))
	}
	return gs, nil
}

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

func parseGoalState(r io.Reader) (gs GoalState, err error) {
	dec := newDecoder(r)
	start, err := root(dec)
	if err != nil {
		return gs, err
	}
	if start.Name.Local != "GoalState" { // in any namespace; those that were seen have none
		return gs, fmt.Errorf("root element is %q, want %q", start.Name.Local, "GoalState")
	}
	var doc goalStateElement
	if err := dec.DecodeElement(&doc, &start); err != nil {
		return gs, err
	}
	container := first(doc.Containers)
	if gs.Incarnation, err = id("Incarnation", doc.Incarnations); err != nil {
		return gs, err
	}
	if gs.ContainerID, err = id("ContainerId", container.IDs); err != nil {
		return gs, err
	}
	if gs.InstanceID, err = id("InstanceId", first(container.Roles).IDs); err != nil {
		return gs, err
	}
	if strings.Trim(gs.Incarnation, "0123456789") != "" {
		return gs, fmt.Errorf("Incarnation: %q is not a decimal number", gs.Incarnation)
	}
	return gs, nil
}

func first[T any](all []T) (t T) {
	if len(all) > 0 {
		t = all[0]
	}
	return t
}

// id returns the first of the identifiers that were found with this name.
func id(name string, found []string) (string, error) {
	id := strings.TrimSpace(first(found))
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("%s: missing", name)
	case id == "":
		return "", fmt.Errorf("%s: empty", name)
	case len(id) > maxID:
		return "", fmt.Errorf("%s: %d bytes long, the limit is %d", name, len(id), maxID)
	case strings.ContainsFunc(id, unicode.IsControl):
		return "", fmt.Errorf("%s: %q has control characters", name, id)
	}
	return id, nil
}

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

// newDecoder returns a decoder of UTF-8 with these bounds.
func newDecoder(r io.Reader) *xml.Decoder {
	in := &tokenReader{Reader: bufio.NewReader(r)}
	raw := xml.NewDecoder(in)
	raw.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("encoding is %q, want utf-8", charset)
	}
	return xml.NewTokenDecoder(&plainTokens{Decoder: raw, in: in})
}

// root returns the document's root element, before which there is no text.
func root(dec *xml.Decoder) (xml.StartElement, error) {
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return xml.StartElement{}, errors.New("no root element")
		}
		if err != nil {
			return xml.StartElement{}, err
		}
		switch t := token.(type) {
		case xml.CharData:
			if text := strings.Trim(string(t), "\ufeff \t\r\n"); text != "" {
				return xml.StartElement{}, fmt.Errorf("%.*q is before the root element", maxExcerpt, text)
			}
		case xml.StartElement:
			return t, nil
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
