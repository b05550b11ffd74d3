// Package systemd_test holds the units and the catalog against the code.
package systemd_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
)

func TestCatalogHasEveryKindInOrder(t *testing.T) {
	text, err := os.ReadFile("nm-azure-dispatch.catalog")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, m := range regexp.MustCompile(`(?m)^-- (.*)\n`).FindAllSubmatch(text, -1) {
		got = append(got, string(m[1]))
	}
	for _, k := range journal.Kinds() {
		want = append(want, k.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("IDs in the catalog (-want +got):\n%s", diff)
	}
}
