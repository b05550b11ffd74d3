package journal_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
)

// Names, IDs and priorities are an interface. The messages may change; this file is the one test that has them.
func TestKinds(t *testing.T) {
	var got strings.Builder
	for _, k := range journal.Kinds() {
		fmt.Fprintf(&got, "%s %s %v: %s\n", k.ID, k.Name, k.Level, k.Message)
	}
	if diff := cmp.Diff(read(t, "testdata/kinds.golden"), got.String()); diff != "" {
		t.Errorf("testdata/kinds.golden (-want +got):\n%s", diff)
	}
}

// Where journald is not there the entries are lines.
func TestText(t *testing.T) {
	var out bytes.Buffer
	j := journal.NewText(&out)
	j.Log(journal.CheckedIn, slog.String("wireserver", "168.63.129.16"), slog.String("bound_to", ""), slog.Int("attempts", 2))
	j.Log(journal.LockHeld, slog.String("interface", "eth0")) // debug
	j.Log(journal.GivenUp, slog.String("last_error", "dial: \"refused\"\nand more"))
	j.Log(journal.NameserversLeft, slog.String("reason", strings.Repeat("x", 5000)))
	j.Close(time.Minute)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || len(lines[2]) > 2100 || !strings.HasSuffix(lines[2], "...") {
		t.Fatalf("%d lines, the last %d bytes long", len(lines), len(lines[len(lines)-1]))
	}
	want := []string{
		"nm-azure-dispatch: " + journal.CheckedIn.Message + ": wireserver=168.63.129.16 attempts=2",
		"nm-azure-dispatch: " + journal.GivenUp.Message + `: last_error="dial: \"refused\"\nand more"`,
	}
	if diff := cmp.Diff(want, lines[:2]); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// stuck is a writer that never returns, as a full journal is.
type stuck struct{ never chan struct{} }

func (s stuck) Write([]byte) (int, error) {
	<-s.never
	return 0, nil
}

// However many entries come and however stuck their reader is, the program goes
// on, and ends a second later at most.
func TestNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		j := journal.NewText(stuck{never})
		begin := time.Now()
		for range 1000 {
			j.Log(journal.CheckedIn)
		}
		j.Close(time.Second)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v, want the second that Close waits", took)
		}
		close(never)
	})
}
