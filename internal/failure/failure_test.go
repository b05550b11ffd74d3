package failure_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/failure"
)

const limit = 512

func TestText(t *testing.T) {
	tests := []struct {
		name  string
		what  string
		units []failure.Unit
		want  string
	}{
		{name: "no unit", what: "no unit failed", want: "no unit failed"},
		{
			name: "newest line first, no line twice",
			what: "failed",
			units: []failure.Unit{{
				Name:  "ignition-fetch.service",
				Lines: []string{"Ignition failed: config is not valid", "config is not valid", "", "error at $.storage.files.0.path, line 1 col 61: path not absolute"},
			}},
			want: "failed: ignition-fetch.service: Ignition failed: config is not valid / error at $.storage.files.0.path, line 1 col 61: path not absolute",
		},
		{
			name:  "several, one without a line",
			what:  "failed",
			units: []failure.Unit{{Name: "a.service", Lines: []string{"1"}}, {Name: `dev-disk-by\x2dlabel-root.device`}, {Name: "c.mount", Lines: []string{"3"}}},
			want:  `failed: a.service: 1; dev-disk-by\x2dlabel-root.device; c.mount: 3`,
		},
		{
			name:  "more than are shown",
			what:  "failed",
			units: []failure.Unit{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"}},
			want:  "failed: a; b; c; d; and 2 more",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := failure.Text(tt.what, tt.units, limit); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What is known to get into logs and must not be in the text.
func TestTextHidesSecrets(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"query of a URL", "GET https://a.blob.core.windows.net/c/config.ign?sv=2022&sig=s3cret: attempt #1", "GET https://a.blob.core.windows.net/c/config.ign?[...]: attempt #1"},
		{"user of a URL", `Get "https://user:s3cret@host:8443/x": EOF`, `Get "https://[...]@host:8443/x": EOF`},
		{"user of a URL without a path", "https://s3cret@host", "https://[...]@host"},
		{"contents in a URL", `bad source "data:;base64,czNjcmV0": no`, `bad source "data:[...] no`},
		{"hash of a password", `Cmd: "usermod" "--root" "/sysroot" "--password" "$y$j9T$s3cret$s3cret" "core"`, `Cmd: "usermod" "--root" "/sysroot" "--password" [...] "core"`},
		{"hash elsewhere", "core:$6$s3cret$s3cret:0", "core:[...]"},
		{"password", "--password s3cret", "--password [...]"},
		{"key", "AccountKey=" + strings.Repeat("s3cret", 10) + "==", "[...]"},
		{"control characters", "a\x1b[31mb\x00\tc\u202e\xff", "a [31mb c \ufffd"},
		{"no secret: JSON path", "error at $.storage.files.0.path, line 1", "error at $.storage.files.0.path, line 1"},
		{"no secret: paths", "/usr/lib/systemd/system/something/really/quite/deep", "/usr/lib/systemd/system/something/really/quite/deep"},
		{"no secret: UUID", "/dev/disk/by-uuid/0f0c7c1e-6b1c-4c3e-9a6c-5f9c7f3b1a02 gone", "/dev/disk/by-uuid/0f0c7c1e-6b1c-4c3e-9a6c-5f9c7f3b1a02 gone"},
		{"no secret: price", "it costs $5 or $6", "it costs $5 or $6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := "failed: x.service: " + tt.want
			got := failure.Text("failed", []failure.Unit{{Name: "x.service", Lines: []string{tt.line}}}, limit)
			if got != want || strings.Contains(got, "s3cret") {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// Whatever is logged, the text has at most limit characters, all printable, and
// says something of each unit that is shown.
func FuzzText(f *testing.F) {
	f.Add("ignition-fetch.service", "error", "fetch", uint8(3))
	f.Add(strings.Repeat("ä", 600), strings.Repeat("x ", 600), "\x00\xff://?", uint8(9))
	f.Fuzz(func(t *testing.T, name, line, other string, n uint8) {
		var units []failure.Unit
		for range n % 16 {
			units = append(units, failure.Unit{Name: "unit " + name, Lines: []string{line, other, line + other}})
		}
		got := failure.Text("failed", units, limit)
		if utf8.RuneCountInString(got) > limit || !utf8.ValidString(got) {
			t.Errorf("%d characters: %q", utf8.RuneCountInString(got), got)
		}
		if i := strings.IndexFunc(got, func(c rune) bool { return !unicode.IsPrint(c) }); i >= 0 {
			t.Errorf("not printable: %q", got)
		}
		if shown := min(len(units), 4); strings.Count(got, "unit") < shown {
			t.Errorf("%d units: %q", shown, got)
		}
	})
}
