package program_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/program"
)

// Every user can run the program, also where the umask is strict: tests run it as nobody.
func TestBuild(t *testing.T) {
	umask := syscall.Umask(0o077)
	defer syscall.Umask(umask)
	path, err := program.Build(t.TempDir(), "0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Dir(path)} {
		fi, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %v, want 0755", name, fi.Mode())
		}
	}
}
