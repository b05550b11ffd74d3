package wire_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// However an attempt ends, neither a file nor a goroutine is left of it: the
// unit's run continues for twenty minutes.
func TestNothingIsLeft(t *testing.T) {
	tests := []struct {
		name   string
		script wiretest.Script
	}{
		{"success", wiretest.Script{}},
		{"statuses", wiretest.Script{GoalState: each(wiretest.Step{Status: 503}), Health: each(wiretest.Step{Status: 410})}},
		{"reset", wiretest.Script{GoalState: each(wiretest.Step{Reset: true}), Health: each(wiretest.Step{Reset: true})}},
		{"closed", wiretest.Script{GoalState: each(wiretest.Step{Close: true}), Health: each(wiretest.Step{CloseAfter: true})}},
		{"not HTTP", wiretest.Script{GoalState: each(wiretest.Step{Raw: new("no")}), Health: each(wiretest.Step{Status: 101})}},
		{"too long", wiretest.Script{GoalState: each(wiretest.Step{BodyBytes: 8 << 20, Chunked: true}), Health: each(wiretest.Step{BodyBytes: 8 << 20})}},
		{"hangs until the context ends", wiretest.Script{GoalState: each(wiretest.Step{Hang: true, Times: -1})}},
		{"body hangs until the context ends", wiretest.Script{GoalState: each(wiretest.Step{Trickle: 200 * ms, Times: -1})}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := serve(t, tt.script)
			// The server's side of a connection is this process's too, and may end a little later.
			files, goroutines := openFiles(t), runtime.NumGoroutine()
			_, _ = report(t, r, 900*time.Millisecond)
			for end := time.Now().Add(5 * time.Second); openFiles(t) > files || runtime.NumGoroutine() > goroutines; {
				if time.Now().After(end) {
					t.Fatalf("%d files and %d goroutines before, now %d and %d", files, goroutines, openFiles(t), runtime.NumGoroutine())
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
