package stream

import (
	"fmt"
	"iter"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"
)

// A cursor is a value of a document and where it is. Its node is nil if
// nothing is there; off is set if that was reported already.
type cursor struct {
	node *jsontree.Node
	at   []string
	off  bool
}

func (c cursor) get(names ...string) cursor {
	return cursor{node: c.node.Get(names...), at: join(c.at, names...), off: c.off}
}

func (c cursor) all() iter.Seq2[string, cursor] {
	return func(yield func(string, cursor) bool) {
		for name, n := range c.node.All() {
			if !yield(name, cursor{node: n, at: join(c.at, name)}) {
				return
			}
		}
	}
}

func (c cursor) isEmpty() bool {
	for range c.all() {
		return false
	}
	return true
}

// A reader reads values out of a document and collects what is wrong with it.
type reader struct{ problems []Problem }

func (r *reader) wrong(at []string, format string, args ...any) {
	r.problems = append(r.problems, Problem{Path: path(at...), Text: fmt.Sprintf(format, args...), Schema: true})
}

// object returns n if it is an object, and otherwise a cursor to nothing.
func (r *reader) object(n cursor, required bool) cursor {
	switch {
	case n.off || n.node.IsObject():
		return n
	case n.node != nil:
		r.wrong(n.at, "is %s; want an object", n.node.Kind())
	case required:
		r.wrong(n.at, "is missing; want an object")
	}
	return cursor{off: true}
}

// text returns the string n, or "" if it breaks the rule.
func (r *reader) text(n cursor, want rule) string {
	s, isText := n.node.Text()
	switch {
	case n.off || n.node == nil && want.optional:
	case n.node == nil:
		r.wrong(n.at, "is missing; want %s", want.want)
	case !isText:
		r.wrong(n.at, "is %s; want %s", n.node.Kind(), want.want)
	case !want.ok(s) && (s != "" || !want.optional):
		r.wrong(n.at, "is %.130q; want %s", s, want.want)
	default:
		return s
	}
	return ""
}

// join never shares memory with base, so that siblings can extend it.
func join(base []string, names ...string) []string {
	return append(append(make([]string, 0, len(base)+len(names)), base...), names...)
}
