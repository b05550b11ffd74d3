package journal_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
)

// Every kind of entry is in the catalog and in the table of
// docs/operations.md, in the same order, and neither names another.
func TestDocumented(t *testing.T) {
	type kind struct{ Name, ID string }
	var want []kind
	var ids []string
	for _, k := range journal.Kinds() {
		want = append(want, kind{k.Name, k.ID})
		ids = append(ids, k.ID)
	}
	var rows []kind
	docs := read(t, "../../docs/operations.md")
	for _, m := range regexp.MustCompile("(?m)^\\| ([a-z0-9-]+) \\| `([0-9a-f]{32})` \\|").FindAllStringSubmatch(docs, -1) {
		rows = append(rows, kind{m[1], m[2]})
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("kinds in docs/operations.md (-want +got):\n%s", diff)
	}
	for _, id := range regexp.MustCompile(`\b[0-9a-f]{32}\b`).FindAllString(docs, -1) {
		if !slices.Contains(ids, id) {
			t.Errorf("docs/operations.md: %s is no MESSAGE_ID of ours", id)
		}
	}
	var catalog []string
	for _, m := range regexp.MustCompile(`(?m)^-- ([0-9a-f]{32})$`).FindAllStringSubmatch(read(t, "../../packaging/systemd/nm-azure-dispatch.catalog"), -1) {
		catalog = append(catalog, m[1])
	}
	if diff := cmp.Diff(ids, catalog); diff != "" {
		t.Errorf("kinds in the catalog (-want +got):\n%s", diff)
	}
}

// No two kinds are the same.
func TestKindsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range journal.Kinds() {
		if seen[k.ID] || seen[k.Name] {
			t.Errorf("%s twice", k.Name)
		}
		seen[k.ID], seen[k.Name] = true, true
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
