package main

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/golden"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/program"
)

func TestMain(m *testing.M) {
	lab.Main()
	flag.Parse()
	os.Exit(m.Run())
}

// The demo prints what it should, except for times, in 80 columns. Moments that are close to each other can change places,
// so those of one timeline are sorted.
func TestDemo(t *testing.T) {
	if err := lab.Available(); err != nil || testing.Short() {
		if os.Getenv("CI") != "" && !testing.Short() {
			t.Fatal(err)
		}
		t.Skip("a lab takes seconds, and root: ", err)
	}
	t.Chdir("../../..")
	if _, err := program.Build("bin", "0.0.0"); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := demo(t.Context(), &b, false); err != nil {
		t.Fatal(err, "\n", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > term.Width || strings.Contains(line, "\x1b") {
			t.Errorf("%q is longer than %d columns, or in colour", line, term.Width)
		}
	}
	golden.Check(t, "lab/cmd/demo/testdata/demo.golden", mask(b.String()))
	if t.Failed() {
		t.Log(b.String())
	}
}

var masks = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\n {21,}`), " "}, // a line that was broken
	{regexp.MustCompile(` *[-+]\d+\.\d{3} s  `), "TIME  "},
	{regexp.MustCompile(`\d+ ms`), "N ms"},
	{regexp.MustCompile(`after_boot_ms=\d+`), "after_boot_ms=N"},
	{regexp.MustCompile(`\S+ after boot, \S+`), "N after boot, N"},
}

// mask replaces what differs each time, and messages by the names of their kinds, and sorts each timeline, with equal lines (a packet that was repeated) as one.
func mask(text string) string {
	for _, m := range masks {
		text = m.re.ReplaceAllString(text, m.with)
	}
	for _, k := range journal.Kinds() {
		text = strings.ReplaceAll(text, k.Message, "<"+k.Name+">")
	}
	var out, moments []string
	for _, line := range strings.SplitAfter(text, "\n") {
		if strings.HasPrefix(line, "TIME") {
			moments = append(moments, line)
			continue
		}
		slices.Sort(moments)
		out = append(append(out, slices.Compact(moments)...), line)
		moments = nil
	}
	return strings.Join(out, "")
}
