package wire

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

const maxID = 256 // bytes of an identifier; real ones have about 40

// GoalState holds the three identifiers of a goal state that a health report
// must echo: it is answered with 410 Gone otherwise.
type GoalState struct {
	Incarnation string // counts the goal states: decimal digits, only ever sent back
	ContainerID string // the machine's place on its host, usually a GUID; can change while Incarnation stays
	InstanceID  string // the machine's name in its deployment
}

// parseGoalState parses the answer to GET /machine/?comp=goalstate. It must be
// UTF-8 (a byte order mark is allowed) without a document type declaration, and have
// a complete GoalState element in any namespace as the root, and in it an
// Incarnation, ContainerId and InstanceId that are not empty, have no control
// characters and at most 256 bytes. White space around them is dropped. Of several
// containers or role instances the first counts, as for every other agent. What
// follows the root element cannot change what it said.
//
// Every error is worth another request: a role instance, for one, can be missing for
// a moment (Azure/WALinuxAgent#2016).
func parseGoalState(body []byte) (GoalState, error) {
	dec := newDecoder(body)
	start, err := root(dec)
	if err != nil {
		return GoalState{}, err
	}
	if start.Name.Local != "GoalState" {
		return GoalState{}, fmt.Errorf("root element is %q, want %q", start.Name.Local, "GoalState")
	}
	// Elements of the same names elsewhere do not match. All fields are slices, because
	// encoding/xml keeps the last of several elements in a plain field.
	var doc struct {
		Incarnations []string `xml:"Incarnation"`
		Containers   []struct {
			IDs   []string `xml:"ContainerId"`
			Roles []struct {
				IDs []string `xml:"InstanceId"`
			} `xml:"RoleInstanceList>RoleInstance"`
		} `xml:"Container"`
	}
	if err := dec.DecodeElement(&doc, &start); err != nil {
		return GoalState{}, err
	}
	container := first(doc.Containers)
	incarnation, err1 := id("Incarnation", doc.Incarnations)
	containerID, err2 := id("ContainerId", container.IDs)
	instanceID, err3 := id("InstanceId", first(container.Roles).IDs)
	if err1 == nil && strings.Trim(incarnation, "0123456789") != "" {
		err1 = fmt.Errorf("%s: %q is not a decimal number", "Incarnation", incarnation)
	}
	return GoalState{incarnation, containerID, instanceID}, cmp.Or(err1, err2, err3)
}

func first[T any](all []T) (t T) {
	if len(all) > 0 {
		t = all[0]
	}
	return t
}

// id returns the first identifier that was found with this name.
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

// decoder refuses <!DOCTYPE ...> wherever it is: a goal state has none, an error
// page of a proxy does.
type decoder struct{ *xml.Decoder }

func newDecoder(body []byte) *xml.Decoder {
	raw := xml.NewDecoder(bytes.NewReader(body))
	raw.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("encoding is %q, want utf-8", charset)
	}
	return xml.NewTokenDecoder(decoder{raw})
}

// Token is what the decoder around this one reads.
func (d decoder) Token() (xml.Token, error) {
	token, err := d.RawToken()
	if t, ok := token.(xml.Directive); ok {
		return nil, fmt.Errorf("document type declaration %.*q refused", maxExcerpt, "<!"+string(t)+">")
	}
	return token, err
}

// root returns the document's root element, before which there is no text.
func root(dec *xml.Decoder) (start xml.StartElement, err error) {
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			err = errors.New("no root element")
		}
		if err != nil {
			return start, err
		}
		switch t := token.(type) {
		case xml.CharData:
			if text := strings.Trim(string(t), "\ufeff \t\r\n"); text != "" {
				return start, fmt.Errorf("%.*q is before the root element", maxExcerpt, text)
			}
		case xml.StartElement:
			return t, nil
		}
	}
}
