// Package nmazuredispatch only holds the check of which package may import
// which: arrows go one way (docs/architecture.md).
package nmazuredispatch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/nm-azure-dispatch/nm-azure-dispatch/"

// rules: files in a directory must not import what begins with one of these.
// The first rule whose directory fits counts. Test files are not looked at.
var rules = []struct {
	dir    string
	denied string
}{
	{"nm", "net/http os/exec log/slog " + own("networkd wire resolv internal")},
	{"networkd", "net/http os/exec log/slog " + own("wire resolv internal")}, // nm has the lease's type
	{"resolv", "net/http os/exec log/slog " + own("wire nm networkd internal")},
	{"wire", "github.com/godbus os/exec log/slog " + own("nm networkd resolv internal")},
	{"packaging/stream", own("nm networkd wire resolv internal cmd lab test")},
	{"internal/bounded", "net/http os/exec log/slog " + own("nm networkd wire resolv internal cmd")},
	{"internal/azure", "net/http os/exec " + own("nm networkd wire resolv internal cmd")},
	{"internal/boot", "net/http os/exec log/slog " + own("nm networkd wire resolv internal cmd")},
	{"internal/link", "net/http os/exec log/slog " + own("nm networkd wire resolv internal cmd")},
	{"internal/netlink", "net/http os/exec log/slog " + own("nm networkd wire resolv internal cmd")},
	{"internal/journal", "net/http os/exec " + own("nm networkd wire resolv internal cmd")},
	{"internal/sysbus", "net/http os/exec log/slog " + own("nm networkd wire resolv internal cmd")},
	{"internal/failure", "net/http log/slog " + own("nm wire resolv internal cmd")},
	{"internal/kvp", "net/http os/exec log/slog " + own("nm networkd wire resolv cmd")},
	{"internal/dispatch", "net/http os/exec github.com/godbus " + own("internal/sysbus internal/link internal/netlink internal/azure cmd lab test")},
	{"internal/machine", "net/http os/exec log/slog " + own("cmd internal/doctor internal/sysbus internal/journal internal/kvp")},
	{"internal/doctor", "net/http os/exec " + own("cmd lab test")},
	{"cmd", "os/exec " + own("lab packaging test")},
}

func own(names string) string {
	var out []string
	for n := range strings.FieldsSeq(names) {
		out = append(out, module+n)
	}
	return strings.Join(out, " ")
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, r := range rules {
			if !strings.HasPrefix(path, r.dir+"/") {
				continue
			}
			seen[r.dir] = true
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, imp := range f.Imports {
				p, err := strconv.Unquote(imp.Path.Value)
				if err != nil {
					return err
				}
				if p == module+"internal/bounded" {
					continue // for all: it knows nothing of the others
				}
				for denied := range strings.FieldsSeq(r.denied) {
					if p == denied || strings.HasPrefix(p, denied+"/") {
						t.Errorf("%s imports %s, which %s must not", path, p, r.dir)
					}
				}
			}
			break
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !seen[r.dir] {
			t.Errorf("no file fits the rule of %s", r.dir)
		}
	}
}

// Only main touches the process's end, its arguments and signals; and nothing
// runs before main.
func TestOnlyMain(t *testing.T) {
	for _, dir := range []string{"nm", "networkd", "wire", "resolv", "internal"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv == nil && n.Name.Name == "init" {
						t.Errorf("%s has an init function", path)
					}
				case *ast.SelectorExpr:
					x, _ := n.X.(*ast.Ident)
					if x != nil && (x.Name == "os" && (n.Sel.Name == "Exit" || n.Sel.Name == "Args") || x.Name == "signal") {
						t.Errorf("%s uses %s.%s", path, x.Name, n.Sel.Name)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
