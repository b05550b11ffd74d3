package jsontree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A style is the white space that separates what a document holds.
type style struct {
	eol    string // line end before a member; empty if the document is one line
	unit   string // indentation of one level
	before string // between a name and its colon
	after  string // between the colon and the value
}

func defaultStyle() style { return style{eol: "\n", unit: "    ", after: " "} }

// styleOf reads the style off the first member of a document.
func styleOf(root *hujson.Value) style {
	members := root.Value.(*hujson.Object).Members
	if len(members) == 0 {
		return defaultStyle()
	}
	first := members[0]
	st := style{before: string(first.Name.AfterExtra), after: string(first.Value.BeforeExtra)}
	lead := first.Name.BeforeExtra
	if i := bytes.LastIndexByte(lead, '\n'); i >= 0 {
		st.eol, st.unit = "\n", string(lead[i+1:])
		if i > 0 && lead[i-1] == '\r' {
			st.eol = "\r\n"
		}
	}
	return st
}

// Set makes the value under the names of path the string s. Objects that are
// missing on the way are made, and null counts as missing. A new member goes
// to the end of its object, spaced like its neighbour or else like the
// document. A string that is s already keeps its spelling.
func (d *Doc) Set(s string, path ...string) error {
	n := d.Root()
	for depth, name := range path {
		if n.Value.Kind() == 'n' {
			n.Value = &hujson.Object{}
		}
		if !n.IsObject() {
			return fmt.Errorf("%s is %s: want an object", strings.Join(path[:depth], "."), n.Kind())
		}
		next := n.Get(name)
		if next == nil {
			next = d.style.grow(n.Value.(*hujson.Object), name, depth)
		}
		n = next
	}
	if have, ok := n.Text(); !ok || have != s {
		n.Value = hujson.String(s)
	}
	return nil
}

// grow adds a member to an object that is depth levels below the root, and
// returns its value: an empty object.
func (st style) grow(obj *hujson.Object, name string, depth int) *Node {
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{Value: &hujson.Object{}}}
	m.Name.AfterExtra, m.Value.BeforeExtra = []byte(st.before), []byte(st.after)
	if st.eol != "" {
		m.Name.BeforeExtra = []byte(st.eol + strings.Repeat(st.unit, depth+1))
	}
	switch last := len(obj.Members) - 1; {
	case last > 0 || last == 0 && st.eol != "":
		like := obj.Members[last]
		m.Name.BeforeExtra, m.Name.AfterExtra, m.Value.BeforeExtra = like.Name.BeforeExtra, like.Name.AfterExtra, like.Value.BeforeExtra
	case last == 0 && st.after != "":
		m.Name.BeforeExtra = []byte(" ") // one line, with a blank after each comma too
	case last < 0 && st.eol != "":
		obj.AfterExtra = []byte(st.eol + strings.Repeat(st.unit, depth))
	}
	obj.Members = append(obj.Members, m)
	return (*Node)(&obj.Members[len(obj.Members)-1].Value)
}

// Delete removes the member at the end of path, and reports whether there was
// one.
func (d *Doc) Delete(path ...string) bool {
	parent := d.Root().Get(path[:len(path)-1]...)
	if !parent.IsObject() {
		return false
	}
	obj := parent.Value.(*hujson.Object)
	i := slices.IndexFunc(obj.Members, func(m hujson.ObjectMember) bool { return text(m.Name.Value) == path[len(path)-1] })
	if i < 0 {
		return false
	}
	obj.Members = slices.Concat(obj.Members[:i], obj.Members[i+1:]) // All goes on with the old ones
	if len(obj.Members) == 0 {
		obj.AfterExtra = nil
	} else if last := &obj.Members[len(obj.Members)-1].Value; last.AfterExtra != nil {
		// White space behind the last value would be written with a comma.
		obj.AfterExtra, last.AfterExtra = append(last.AfterExtra, obj.AfterExtra...), nil
	}
	return true
}
