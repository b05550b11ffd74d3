// Package bounded limits the length of error texts. Much of an error's text can
// come from another machine: it goes to the journal, to a record and to a
// terminal, and must not fill or control any of them.
package bounded

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxText is the most that Text returns, in bytes.
const MaxText = 512

// ellipsis ends a text that was cut.
const ellipsis = "..."

// Text returns s in at most MaxText bytes, of printable characters only: all
// others, and bytes that are not UTF-8, are escaped as in a Go string, and what
// is too long is cut and ends in "...". Text leaves its own results as they are.
func Text(s string) string {
	var b strings.Builder
	fits := 0 // how much of b leaves room for the ellipsis
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		c := s[:size]
		if !strconv.IsPrint(r) || r == utf8.RuneError && size == 1 {
			c = strings.Trim(strconv.Quote(c), `"`)
		}
		b.WriteString(c)
		s = s[size:]
		if b.Len() > MaxText {
			return b.String()[:fits] + ellipsis
		}
		if b.Len() <= MaxText-len(ellipsis) {
			fits = b.Len()
		}
	}
	return b.String()
}

// Error returns an error that wraps err and has its text as [Text] returns it;
// nil for nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return &boundedError{Text(err.Error()), err}
}

type boundedError struct {
	text string
	err  error
}

func (e *boundedError) Error() string { return e.text }
func (e *boundedError) Unwrap() error { return e.err }
