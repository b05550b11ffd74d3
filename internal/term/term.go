// Package term writes aligned text for a terminal of 80 columns.
package term

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Width is the length of a line, in columns.
const Width = 80

// Colour is an ANSI colour, ECMA-48 section 8.3.117.
type Colour string

// Colours in use.
const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Faint  Colour = "2"
)

// Paint returns the text in the colour.
func (c Colour) Paint(text string) string {
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Colours reports whether to write in colour to a file: to a terminal that supports
// it, unless the user has set NO_COLOR (no-color.org).
func Colours(f *os.File, getenv func(string) string) bool {
	if getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Indent breaks text that begins in the given column into lines of at most Width
// columns, and indents all but the first. A word that is too long stays whole.
// Control characters become blanks: the text can come from another machine.
func Indent(text string, column int) string {
	var b strings.Builder
	at := column
	for i, word := range strings.FieldsFunc(text, blank) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > Width:
			b.WriteString("\n" + strings.Repeat(" ", column))
			at = column
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

func blank(c rune) bool { return c <= ' ' || c >= 0x7f && c < 0xa0 || c == utf8.RuneError }
