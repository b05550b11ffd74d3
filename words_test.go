package nmazuredispatch

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wordsFile lists the phrases that this project does not use: an expression, a tab, and what to write instead.
const wordsFile = "docs/words.tsv"

// maxPhrases is how many of them a thousand words of prose may hold.
const maxPhrases = 1.0

// TestWords counts the phrases in what people read: comments and strings of Go files, and the whole of all others. With
// -v it prints each place.
func TestWords(t *testing.T) {
	list, err := os.ReadFile(wordsFile)
	if err != nil {
		t.Fatal(err)
	}
	var instead []string
	var phrases []*regexp.Regexp
	for line := range strings.Lines(string(list)) {
		phrase, better, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if !ok {
			t.Fatalf("%s: %q has no tab", wordsFile, line)
		}
		instead, phrases = append(instead, better), append(phrases, regexp.MustCompile(`(?i)\b(`+phrase+`)\b`))
	}
	words, found := 0, 0
	for _, name := range readable(t) {
		for _, p := range prose(t, name) {
			words += len(strings.Fields(p.text))
			for i, re := range phrases {
				for _, m := range re.FindAllString(p.text, -1) {
					found++
					t.Logf("%s:%d: %q, write: %s", name, p.line, m, instead[i])
				}
			}
		}
	}
	rate := 1000 * float64(found) / float64(words)
	t.Logf("%d phrases in %d words: %.2f in a thousand", found, words, rate)
	if rate >= maxPhrases {
		t.Errorf("%.2f phrases of %s in a thousand words, want fewer than %.0f; make words lists them", rate, wordsFile, maxPhrases)
	}
}

// passage is text and the line that it begins on.
type passage struct {
	text string
	line int
}

// prose returns what people read in a file.
func prose(t *testing.T, name string) []passage {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if path.Ext(name) != ".go" {
		var all []passage
		for line := range strings.Lines(string(data)) {
			all = append(all, passage{line, len(all) + 1})
		}
		return all
	}
	var all []passage
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(name, -1, len(data))
	s.Init(file, data, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		switch tok {
		case token.EOF:
			return all
		case token.COMMENT, token.STRING:
			all = append(all, passage{text, file.Line(pos)})
		}
	}
}

// readable returns the files of the project that hold prose.
func readable(t *testing.T) []string {
	t.Helper()
	kinds := []string{".go", ".md", ".txt", ".sh", ".mk", ".spec", ".service", ".timer", ".catalog", ".8", ".yml", ".yaml", ""}
	var names []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && d.Name() != "LICENSE" && slices.Contains(kinds, path.Ext(name)) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
