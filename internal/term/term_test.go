package term_test

import (
	"os"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

func TestIndent(t *testing.T) {
	long := strings.Repeat("x", 90)
	tests := []struct {
		name, text string
		column     int
		want       string
	}{
		{"empty", "", 10, ""},
		{"short", "one two", 10, "one two"},
		{"breaks at the edge", strings.Repeat("a", 70) + " " + strings.Repeat("b", 9), 0, strings.Repeat("a", 70) + " " + strings.Repeat("b", 9)},
		{"breaks beyond", strings.Repeat("a", 70) + " " + strings.Repeat("b", 10), 0, strings.Repeat("a", 70) + "\n" + strings.Repeat("b", 10)},
		{"hangs", strings.Repeat("a", 60) + " bbbbbbbb", 20, strings.Repeat("a", 60) + "\n" + strings.Repeat(" ", 20) + "bbbbbbbb"},
		{"a long word stays whole", "a " + long + " b", 2, "a\n  " + long + "\n  b"},
		{"characters, not bytes", strings.Repeat("ä", 39) + " " + strings.Repeat("ö", 40), 0, strings.Repeat("ä", 39) + " " + strings.Repeat("ö", 40)},
		{"control characters", "a\x1b[31mb\tc\nd\x9b", 0, "a [31mb c d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := term.Indent(tt.text, tt.column); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestPaint(t *testing.T) {
	if got := term.Red.Paint("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}

func TestColours(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	none := func(string) string { return "" }
	if term.Colours(f, none) {
		t.Error("colours in a file")
	}
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal is available: %v", err)
	}
	defer tty.Close()
	if !term.Colours(tty, none) {
		t.Error("no colours on a terminal")
	}
	for _, kv := range []string{"NO_COLOR=1", "TERM=dumb"} {
		k, v, _ := strings.Cut(kv, "=")
		if term.Colours(tty, func(name string) string {
			if name == k {
				return v
			}
			return ""
		}) {
			t.Errorf("colours in spite of %s", kv)
		}
	}
}
