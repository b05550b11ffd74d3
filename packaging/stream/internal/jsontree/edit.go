package jsontree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A style is how a document separates what it holds.
type style struct {
	eol   string // line end before a member; empty if the document is one line
	unit  string // indentation of one level
	colon string // between name and value
}

func defaultStyle() style { return style{eol: "\n", unit: "    ", colon: ": "} }

// styleOf reads the style off the first member of a document.
func styleOf(root *Node) style {
	if len(root.members) == 0 {
		return defaultStyle()
	}
	lead, colon := root.members[0].split()
	i := bytes.LastIndexByte(lead, '\n')
	if i < 0 {
		return style{colon: string(colon)}
	}
	eol := "\n"
	if i > 0 && lead[i-1] == '\r' {
		eol = "\r\n"
	}
	return style{eol: eol, unit: string(lead[i+1:]), colon: string(colon)}
}

// split returns the white space before a member's name and what stands
// between the name and the value.
func (m *member) split() (lead, colon []byte) {
	open := bytes.IndexByte(m.head, '"')
	end := bytes.LastIndexByte(m.head, '"')
	return m.head[:open:open], m.head[end+1:]
}

// Set makes the value under the names of path the string s. Objects that are
// missing on the way are made, and null counts as missing. A new member goes
// to the end of its object, spaced like its neighbour or else like the
// document. A string that is s already keeps its spelling.
func (d *Doc) Set(s string, path ...string) error {
	n := &d.root
	for depth, name := range path {
		if n.kind == null {
			*n = Node{kind: object}
		}
		if n.kind != object {
			return fmt.Errorf("%s is %s: want an object", strings.Join(path[:depth], "."), n.Kind())
		}
		next := n.member(name)
		if next == nil {
			next = n.grow(name, d.style, depth)
		}
		n = next
	}
	if have, ok := n.Text(); ok && have == s {
		return nil
	}
	*n = Node{kind: text, raw: quote(s)}
	return nil
}

// grow adds a member to n, which is depth levels below the root, and returns
// its value: an empty object.
func (n *Node) grow(name string, st style, depth int) *Node {
	lead, colon := []byte(st.eol+strings.Repeat(st.unit, depth+1)), []byte(st.colon)
	if st.eol == "" {
		lead = nil
	}
	switch last := len(n.members) - 1; {
	case last > 0 || last == 0 && st.eol != "":
		lead, colon = n.members[last].split()
	case last == 0 && strings.HasSuffix(st.colon, " "):
		lead = []byte(" ") // one line, with a blank after each comma too
	case last < 0 && st.eol != "":
		n.tail = []byte(st.eol + strings.Repeat(st.unit, depth))
	}
	head := append(bytes.Clone(lead), quote(name)...)
	n.members = append(n.members, member{name: name, head: append(head, colon...), value: Node{kind: object}})
	if n.index != nil {
		n.index[name] = len(n.members) - 1
	}
	return &n.members[len(n.members)-1].value
}

// Delete removes the member at the end of path, and says whether there was one.
func (d *Doc) Delete(path ...string) bool {
	n := d.root.Get(path[:len(path)-1]...)
	if n == nil {
		return false
	}
	for i := range n.members {
		if n.members[i].name != path[len(path)-1] {
			continue
		}
		n.members = append(n.members[:i:i], n.members[i+1:]...)
		n.index = nil // the positions are others now
		if len(n.members) == 0 {
			n.tail = nil
		}
		return true
	}
	return false
}

// quote writes s as JSON without the escapes that encoding/json adds for HTML.
func quote(s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
