package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func TestTellHost(t *testing.T) {
	refused := errors.New("connection refused")
	ready := func(_ context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
		r.BeforePost()
		return wire.Outcome{Attempt: wire.Attempt{Server: r.Server}}, nil
	}
	late := func(_ context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
		r.OnAttempt(wire.Attempt{Server: r.Server, Err: refused})
		r.OnAttempt(wire.Attempt{Server: r.Server, Err: refused}) // the same cause is not logged again, but kept
		r.BeforePost()
		return wire.Outcome{Attempt: wire.Attempt{Server: r.Server}}, nil
	}
	never := func(_ context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
		r.OnAttempt(wire.Attempt{Server: r.Server, Err: refused})
		return wire.Outcome{}, errors.New("time is up")
	}
	tests := []struct {
		name   string
		report func(context.Context, *wire.Reporter, wire.Health) (wire.Outcome, error)
		reason string // of a failure that is reported
		want   []string
	}{
		{"ready at once", ready, "", []string{"", ""}},
		{"ready late", late, "", []string{"connection refused", "connection refused", "", ""}},
		{"given up", never, "", []string{"connection refused", "time is up"}},
		{"a failure reported", ready, "no disk", []string{"no disk", "no disk", "no disk"}},
		{"a failure that cannot be reported", never, "no disk", []string{"no disk", "no disk", "no disk"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := newStore(t)
			synctest.Test(t, func(t *testing.T) {
				var got []string
				c := &dispatch.CheckIn{
					Env:      &dispatch.Env{Store: dir, Log: func(journal.Kind, ...slog.Attr) {}},
					Report:   tt.report,
					TellHost: func(reason string) { got = append(got, reason) },
				}
				if tt.reason != "" {
					_, _ = c.Follow(t.Context(), dispatch.DefaultTarget("", ""), wire.ProvisioningFailed(tt.reason), false)
				} else {
					_, _ = c.Run(t.Context(), dispatch.DefaultTarget("", ""), wire.Ready(), false)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("records for the host (-want +got):\n%s", diff)
				}
			})
		})
	}
}
