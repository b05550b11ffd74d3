package journal_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
)

// Kinds are an interface: their ids are 128 bits in hex and all different.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range journal.Kinds() {
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(k.ID) || seen[k.ID] || seen[k.Name] || k.Message == "" {
			t.Errorf("kind %+v", k)
		}
		seen[k.ID], seen[k.Name] = true, true
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
		"nm-azure-dispatch: checked in with the WireServer: Azure knows that this VM is ready: wireserver=168.63.129.16 attempts=2",
		`nm-azure-dispatch: gave up: Azure has not been told how this VM stands: last_error="dial: \"refused\"\nand more"`,
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
// on, and ends a second later at the most.
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
