package bounded_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

func TestText(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"plain", `dial tcp4: "refused" \ é`, `dial tcp4: "refused" \ é`},
		{"control characters", "a\r\n\x1b[31m\x00\x7f\u0085", `a\r\n\x1b[31m\x00\x7f\u0085`},
		{"not UTF-8", "a\xff\xc3", `a\xff\xc3`},
		{"replacement character", "a\ufffd", "a\ufffd"},
		{"changes the direction of text", "a\u202eb", `a\u202eb`},
		{"at the limit", x(512), x(512)},
		{"over the limit", x(513), x(509) + "..."},
		{"far over the limit", x(60_000), x(509) + "..."},
		{"no half character", x(508) + "éé", x(508) + "éé"},
		{"no half character at the cut", x(508) + "ééé", x(508) + "..."},
		{"no half escape", x(508) + "\n\n\n", x(508) + "..."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := bounded.Text(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x00\xff" + strings.Repeat("é\u202e", 300))
	f.Fuzz(func(t *testing.T, s string) {
		got := bounded.Text(s)
		if len(got) > bounded.MaxText || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if again := bounded.Text(got); again != got {
			t.Errorf("%q became %q", got, again)
		}
	})
}

func TestError(t *testing.T) {
	if bounded.Error(nil) != nil {
		t.Error("nil became an error")
	}
	err := bounded.Error(errors.Join(errors.New("first"), io.EOF))
	if want := `first\nEOF`; err.Error() != want || !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want %s, with io.EOF in it", err, want)
	}
}
