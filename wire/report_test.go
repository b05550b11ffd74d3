package wire_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// serve plays the script on loopback and returns a Reporter for it.
func serve(t *testing.T, script wiretest.Script) (*wire.Reporter, *wiretest.Server) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := wiretest.New(script, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	at := netip.MustParseAddrPort(l.Addr().String())
	r := &wire.Reporter{Server: at.Addr(), UserAgent: "nm-azure-dispatch/test"}
	r.SetPort(at.Port())
	return r, srv
}

func TestReport(t *testing.T) {
	r, srv := serve(t, wiretest.Script{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := r.Report(ctx, wire.Ready())
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Outcome{
		Server:    r.Server,
		Via:       wire.ViaHealth,
		GoalState: wire.GoalState(wiretest.DefaultGoalState),
		Attempts:  1,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	for _, q := range srv.Requests() {
		t.Logf("%+v", q)
	}
}
