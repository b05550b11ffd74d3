package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build returns a folder with the program in it, built as it is shipped.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(dir, "azure-stream"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return dir
}

// TestImports: the tool is of the image build, and knows nothing of the
// program that is in the image.
func TestImports(t *testing.T) {
	const module = "github.com/nm-azure-dispatch/nm-azure-dispatch/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "../../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if inside, ok := strings.CutPrefix(name, module); ok && !strings.HasPrefix(inside, "packaging/stream") {
			t.Errorf("imports %s", name)
		}
	}
}
