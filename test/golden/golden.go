// Package golden is test support: it compares text with a file of what is expected.
package golden

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check fails the test if the file has another content. UPDATE_GOLDEN=1 writes the file.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
