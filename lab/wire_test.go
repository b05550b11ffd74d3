package lab_test

import (
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

func TestWireServer(t *testing.T) {
	t.Parallel()
	l := start(t, lab.Config{})
	connected(t, l, "eth0")
	get := func(addr string) (string, error) {
		return l.Guest.Run(t.Context(), "curl", "-sSfm", "1", "-H", "x-ms-version: 2012-11-30",
			"http://"+addr+"/machine/?comp=goalstate")
	}
	for _, addr := range []string{lab.Constant, lab.Other} {
		if body, err := get(addr); !strings.Contains(body, "<GoalState") {
			t.Errorf("goal state of %s is %q, %v", addr, body, err)
		}
	}
	tests := []struct {
		name    string
		disturb func() error
		want    string // of curl's message
	}{
		{"status", func() error {
			return l.Cloud.PlayWire(lab.WireScript{GoalState: []lab.WireStep{{Status: 503}}})
		}, "error: 503"},
		{"refused", func() error { l.Cloud.CloseWire(); return nil }, "Couldn't connect"},
		{"dropped", func() error { return l.Cloud.DropWire(t.Context(), true) }, "timed out"},
	}
	for _, tt := range tests {
		ok(t, tt.disturb())
		if _, err := get(lab.Constant); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want %q", tt.name, err, tt.want)
		}
	}
	ok(t, l.Cloud.DropWire(t.Context(), false))
	ok(t, l.Cloud.PlayWire(lab.WireScript{}))
	_, err := get(lab.Constant)
	ok(t, err)
	requests := l.Cloud.Requests()
	if len(requests) != 4 {
		t.Errorf("there were %d requests, want 4: %v", len(requests), requests)
	}
}
