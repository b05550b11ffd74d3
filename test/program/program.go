// Package program is test support: it builds the program under test.
package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const path = "github.com/nm-azure-dispatch/nm-azure-dispatch/cmd/nm-azure-dispatch"

// Build builds nm-azure-dispatch as make build does, into a directory that every user can then read, and returns its path. Every user can run it.
//
// A test whose process calls it depends on the program's sources: go test repeats a cached result only if the files and
// directories that the test opened are as they were, and does not know what another process was built from.
func Build(dir, version string) (string, error) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", path)
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	dirs, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	for dir := range strings.FieldsSeq(string(dirs)) {
		if _, err := os.ReadDir(dir); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, "nm-azure-dispatch")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", program, path)
	build.Env = list.Env
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, errors.Join(os.Chmod(dir, 0o755), os.Chmod(program, 0o755)) // whatever the umask
}
