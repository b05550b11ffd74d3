package faults_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/lab/faults"
)

// Every line of the threat model names what holds it, and that is there.
func TestSecurityPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	there := goTests(t)
	for _, c := range faults.All() {
		there["faults: "+c.Name] = true
	}
	for name := range messes(t) {
		there["messes: "+name] = true
	}
	named := regexp.MustCompile("`((?:faults|messes): [^`]+|(?:[a-z-]+\\.)?(?:Test|Fuzz)[A-Z]\\w*)`")
	rows := 0
	for line := range strings.Lines(string(b)) {
		names := named.FindAllStringSubmatch(line, -1)
		for _, n := range names {
			if !there[n[1]] && !strings.HasSuffix(n[1], ": X") {
				t.Errorf("%s does not exist", n[1])
			}
		}
		if row := strings.HasPrefix(line, "| ") && !strings.HasSuffix(line, "tests |\n"); row {
			rows++
			if len(names) == 0 {
				t.Errorf("no test is named in: %s", line)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows: the page is not read as it should be", rows)
	}
}

// goTests are the repository's tests, "package.TestName", those of the root without a package.
func goTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				name := fn.Name.Name
				if dir != root {
					name = filepath.Base(dir) + "." + name
				}
				found[name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// messes are the names in lab's table of that name.
func messes(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile("../state_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`name: "([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
		found[m[1]] = true
	}
	return found
}

// The tables on the page are of these cases.
func TestReliabilityPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for _, c := range faults.All() {
		row := "| " + c.Name + " |"
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, row) }) {
			t.Errorf("no row begins with %q: make faults-doc", row)
		}
	}
	if strings.Contains(string(b), "RED") {
		t.Error("a row is red")
	}
}
