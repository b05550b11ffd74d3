package jsontree

import (
	"bytes"
	"fmt"
)

// A parser walks text that is known to be valid JSON.
type parser struct {
	in     []byte
	pos    int
	values int
}

func (p *parser) space() []byte {
	start := p.pos
	for p.pos < len(p.in) && bytes.IndexByte([]byte(" \t\r\n"), p.in[p.pos]) >= 0 {
		p.pos++
	}
	return p.in[start:p.pos:p.pos]
}

func (p *parser) value(depth int) (Node, error) {
	if p.values++; p.values > MaxValues {
		return Node{}, fmt.Errorf("%s: more than %d values: not a document of this kind", place(p.in, p.pos), MaxValues)
	}
	if depth > MaxDepth {
		return Node{}, fmt.Errorf("%s: more than %d levels deep: not a document of this kind", place(p.in, p.pos), MaxDepth)
	}
	start := p.pos
	kind := p.in[start]
	switch kind {
	case object:
		return p.object(depth)
	case array:
		if err := p.array(depth); err != nil {
			return Node{}, err
		}
	case text:
		p.text()
	case 't', 'f', 'n':
		if kind == 'f' {
			kind = truth
		}
		p.word()
	default:
		kind = number
		p.word()
	}
	return Node{kind: kind, raw: p.in[start:p.pos:p.pos]}, nil
}

func (p *parser) object(depth int) (Node, error) {
	n := Node{kind: object}
	seen := make(map[string]int)
	p.pos++ // the brace
	start := p.pos
	p.space()
	for p.in[p.pos] != '}' {
		at := p.pos
		p.text()
		name, ok := (&Node{kind: text, raw: p.in[at:p.pos]}).Text()
		if _, twice := seen[name]; !ok || twice {
			return Node{}, fmt.Errorf("%s: %.130q is here twice in one object, and readers disagree which one counts: remove one",
				place(p.in, at), name)
		}
		seen[name] = len(n.members)
		p.space()
		p.pos++ // the colon
		p.space()
		m := member{name: name, head: p.in[start:p.pos:p.pos]}
		var err error
		if m.value, err = p.value(depth + 1); err != nil {
			return Node{}, err
		}
		after := p.space()
		n.members = append(n.members, m)
		if p.in[p.pos] == '}' {
			start = p.pos - len(after)
			break
		}
		n.members[len(n.members)-1].trail = after
		p.pos++ // the comma
		start = p.pos
		p.space()
	}
	n.tail = p.in[start:p.pos:p.pos]
	p.pos++
	if len(n.members) > 16 {
		n.index = seen
	}
	return n, nil
}

// array walks over an array. Nothing in it is ever changed, so nothing is
// kept; what is refused is refused in it too.
func (p *parser) array(depth int) error {
	p.pos++ // the bracket
	p.space()
	for p.in[p.pos] != ']' {
		if _, err := p.value(depth + 1); err != nil {
			return err
		}
		if p.space(); p.in[p.pos] == ',' {
			p.pos++
			p.space()
		}
	}
	p.pos++
	return nil
}

func (p *parser) text() {
	for p.pos++; p.in[p.pos] != '"'; p.pos++ {
		if p.in[p.pos] == '\\' {
			p.pos++
		}
	}
	p.pos++
}

// word walks over a number, true, false or null.
func (p *parser) word() {
	for p.pos < len(p.in) && bytes.IndexByte([]byte(" \t\r\n,]}"), p.in[p.pos]) < 0 {
		p.pos++
	}
}
