// Package jsontree reads a JSON document, changes single members of it, and
// writes it back with every other byte as it was: the order of members, the
// white space, the spelling of numbers and escapes. The tree is hujson's; this
// package refuses what is not plain JSON, and matches the document's layout.
package jsontree

import (
	"bytes"
	"iter"

	"github.com/tailscale/hujson"
)

// A Doc is one JSON document as it was written.
type Doc struct {
	root  hujson.Value
	style style
}

// New returns an empty object that grows with an indentation of four
// spaces, the way published stream documents look.
func New() *Doc {
	return &Doc{root: hujson.Value{Value: &hujson.Object{}, AfterExtra: []byte("\n")}, style: defaultStyle()}
}

// Root returns the document's outermost value. A Node is valid until the
// next change of its document.
func (d *Doc) Root() *Node { return (*Node)(&d.root) }

// Bytes returns the document. Without changes these are the parsed bytes.
func (d *Doc) Bytes() []byte { return d.root.Pack() }

// A Node is a value of the document. A nil Node is no value at all.
type Node hujson.Value

// Get returns the value under the names of path, one object deeper each, or
// nil if there is none.
func (n *Node) Get(path ...string) *Node {
	for _, name := range path {
		in := n
		n = nil
		for have, value := range in.All() {
			if have == name {
				n = value
				break
			}
		}
	}
	return n
}

// All yields an object's members in the document's order.
func (n *Node) All() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		if !n.IsObject() {
			return
		}
		members := n.Value.(*hujson.Object).Members
		for i := range members {
			if !yield(text(members[i].Name.Value), (*Node)(&members[i].Value)) {
				return
			}
		}
	}
}

// IsObject reports whether n is an object.
func (n *Node) IsObject() bool { return n != nil && n.Value.Kind() == '{' }

// Text returns the value of a string, and whether n is one.
func (n *Node) Text() (string, bool) {
	if n == nil || n.Value.Kind() != '"' {
		return "", false
	}
	return text(n.Value), true
}

// Raw returns the value as it was written.
func (n *Node) Raw() string { return string((*hujson.Value)(n).Pack()) }

// text is the value of a literal that is a string.
func text(v hujson.ValueTrimmed) string {
	literal := v.(hujson.Literal)
	if bytes.IndexByte(literal, '\\') < 0 { // Literal.String decodes, which is slow
		return string(literal[1 : len(literal)-1])
	}
	return literal.String()
}

// Kind names what n is, with its article: "a number", "an object".
func (n *Node) Kind() string {
	if n == nil {
		return "nothing"
	}
	return map[hujson.Kind]string{
		'{': "an object", '[': "an array", '"': "a string", '0': "a number", 'n': "null", 't': "a boolean", 'f': "a boolean",
	}[n.Value.Kind()]
}
