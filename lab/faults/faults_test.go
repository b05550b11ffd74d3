package faults_test

import (
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/lab/faults"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/program"
)

func TestMain(m *testing.M) {
	faults.Main()
	os.Exit(m.Run())
}

var write = flag.String("write", "", "the Markdown file to put the tables into, between its markers")

// parallel is how many cases are played at a time: nearly all of them wait.
const parallel = 12

// busy is what a machine that does a dozen other things may add to a time, beyond slack.
const busy = 10 * time.Second

// The cases that take seconds, with times that fail for what hangs and not for a busy machine; with FAULTS=all every case.
func TestFaults(t *testing.T) {
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
	cases := faults.All()
	if os.Getenv("FAULTS") != "all" {
		cases = quick(cases)
	}
	outcomes := make([]faults.Outcome, len(cases))
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel) // and not t.Parallel: there can be more at a time than there are cores, in this order
	for i, c := range cases {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t.Run(c.Name, func(t *testing.T) {
				o := faults.Play(t.Context(), path, c)
				if len(o.Faults) > 0 {
					t.Errorf("%s\nrequests %v\nstandard error:\n%s", strings.Join(o.Faults, "\n"), o.Requests, o.Stderr)
				}
				t.Logf("%v, %d KiB, %d files, %d requests, %d Readys", o.Took, o.PeakKiB, o.FDs, len(o.Requests), o.Readys)
				outcomes[i] = o
			})
		})
	}
	wg.Wait()
	if *write != "" {
		if err := faults.WriteTables(*write, outcomes); err != nil {
			t.Error(err)
		}
	}
}

func quick(cases []faults.Case) (out []faults.Case) {
	for _, c := range cases {
		if c.Want.Within >= 16*time.Second {
			continue
		}
		c.Want.Within += busy
		if c.Peer != (faults.Peer{}) {
			c.Peer.Took += busy
		}
		out = append(out, c)
	}
	return out
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
	t.Logf("%d cases, %d of them quick", len(faults.All()), len(quick(faults.All())))
}
