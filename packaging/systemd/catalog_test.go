// Package systemd_test compares the units and the catalog with the code.
package systemd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each entry of the catalog has its header lines, in order, and refers only to fields that the program logs.
func TestCatalog(t *testing.T) {
	logged := regexp.MustCompile(`slog\.[A-Z]\w+\("(\w+)"`)
	var fields []string
	for _, dir := range []string{"../../internal/dispatch", "../../cmd/nm-azure-dispatch"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			for _, m := range logged.FindAllStringSubmatch(read(t, name), -1) {
				fields = append(fields, "NM_AZURE_"+strings.ToUpper(m[1]))
			}
		}
	}
	header := regexp.MustCompile(`(?s)^[0-9a-f]{32}\nSubject: [^\n]{1,90}\nDefined-By: nm-azure-dispatch\n` +
		`Support: https://[^\n]+\nDocumentation: man:nm-azure-dispatch\(8\)\n\n[^\n].*[^\n]\n\n?$`)
	for _, entry := range regexp.MustCompile(`(?m)^-- `).Split(read(t, "nm-azure-dispatch.catalog"), -1)[1:] {
		if !header.MatchString(entry) {
			t.Errorf("not the form of a catalog entry:\n%s", entry)
		}
		for _, f := range regexp.MustCompile(`NM_AZURE_\w+`).FindAllString(entry, -1) {
			if !slices.Contains(fields, f) {
				t.Errorf("the program logs no field %s:\n%s", f, entry)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
