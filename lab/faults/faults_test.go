package faults_test

import (
	"os"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/lab/faults"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/program"
)

func TestMain(m *testing.M) {
	faults.Main()
	os.Exit(m.Run())
}

// parallel is how many cases are played at a time: nearly all of them wait.
const parallel = 12

// The cases that take seconds; `make faults` plays all.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("the cases take seconds")
	}
	if err := faults.Available(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	path, err := program.Build(t.TempDir(), "0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range faults.PlayAll(t.Context(), path, faults.Quick(), parallel, func(faults.Outcome) {}) {
		t.Run(o.Name, func(t *testing.T) {
			if len(o.Faults) > 0 {
				t.Errorf("%s\nrequests %v\nstandard error:\n%s", strings.Join(o.Faults, "\n"), o.Requests, o.Stderr)
			}
			t.Logf("%v, %d KiB, %d files, %d requests, %d Readys", o.Took, o.PeakKiB, o.FDs, len(o.Requests), o.Readys)
		})
	}
}

// A case is found by its name.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range faults.All() {
		if seen[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		seen[c.Name] = true
	}
	t.Logf("%d cases, %d of them quick", len(faults.All()), len(faults.Quick()))
}
