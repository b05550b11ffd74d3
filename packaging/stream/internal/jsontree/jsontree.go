// Package jsontree reads a JSON document, changes single members of it, and
// writes it back with every other byte as it was: the order of members, the
// white space, the spelling of numbers and escapes.
package jsontree

import (
	"encoding/json"
	"iter"
)

// A Doc is one JSON document as it was written.
type Doc struct {
	root       Node
	head, tail []byte // white space around the root
	style      style
}

// New returns an empty object that grows with an indentation of four
// spaces, the way published stream documents look.
func New() *Doc {
	return &Doc{root: Node{kind: object}, tail: []byte("\n"), style: defaultStyle()}
}

// Root returns the document's outermost value. A Node is valid until the
// next change of its document.
func (d *Doc) Root() *Node { return &d.root }

// Bytes returns the document. Without changes these are the parsed bytes.
func (d *Doc) Bytes() []byte {
	out := append([]byte(nil), d.head...)
	out = d.root.appendTo(out)
	return append(out, d.tail...)
}

// The kinds of a Node: the first byte of its text, with one for all numbers.
const (
	object = '{'
	array  = '['
	text   = '"'
	number = '0'
	truth  = 't'
	null   = 'n'
)

// A Node is a value of the document.
type Node struct {
	kind    byte
	raw     []byte         // the value as written, of everything but an object
	members []member       // of an object
	tail    []byte         // white space before an object's closing brace
	index   map[string]int // of the members, if they are many
}

// A member is one name and value of an object.
type member struct {
	name  string
	head  []byte // white space, the name as written, white space, colon, white space
	value Node
	trail []byte // white space between the value and the comma
}

// Get returns the value under the names of path, one object deeper each, or
// nil if there is none.
func (n *Node) Get(path ...string) *Node {
	for _, name := range path {
		if n = n.member(name); n == nil {
			return nil
		}
	}
	return n
}

func (n *Node) member(name string) *Node {
	if n == nil {
		return nil
	}
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return &n.members[i].value
		}
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return &n.members[i].value
		}
	}
	return nil
}

// All yields an object's members in the document's order.
func (n *Node) All() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		if n == nil {
			return
		}
		for i := range n.members {
			if !yield(n.members[i].name, &n.members[i].value) {
				return
			}
		}
	}
}

// IsObject says whether n is an object.
func (n *Node) IsObject() bool { return n != nil && n.kind == object }

// Text returns the value of a string, and whether n is one.
func (n *Node) Text() (string, bool) {
	if n == nil || n.kind != text {
		return "", false
	}
	var s string
	err := json.Unmarshal(n.raw, &s)
	return s, err == nil
}

// Kind names what n is, with its article: "a number", "an object".
func (n *Node) Kind() string {
	if n == nil {
		return "nothing"
	}
	switch n.kind {
	case object:
		return "an object"
	case array:
		return "an array"
	case text:
		return "a string"
	case number:
		return "a number"
	case null:
		return "null"
	}
	return "a boolean"
}

func (n *Node) appendTo(out []byte) []byte {
	if n.kind != object {
		return append(out, n.raw...)
	}
	out = append(out, '{')
	for i := range n.members {
		m := &n.members[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m.head...)
		out = m.value.appendTo(out)
		out = append(out, m.trail...)
	}
	out = append(out, n.tail...)
	return append(out, '}')
}
