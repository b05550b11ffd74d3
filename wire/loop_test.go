package wire_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// A server that is refused, or not reached, for a while.
func TestServerComesUpLate(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			time.AfterFunc(10*sec, func() { n.serve(wire.DefaultAddr, wiretest.Script{}) })
			got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
			if got.err != nil || got.took < 10*sec || got.took > 11*sec+100*ms {
				t.Errorf("took %s, %v; want 10 s and a pause", got.took, got.err)
			}
		})
	})
	t.Run("lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			n.serve(wire.DefaultAddr, wiretest.Script{})
			n.lose(wire.DefaultAddr, 10*sec)
			got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
			if got.err != nil || got.took < 10*sec || got.took > 11*sec+100*ms {
				t.Errorf("took %s, %v; want 10 s and a pause", got.took, got.err)
			}
		})
	})
}

// The pauses over an hour of one and the same failure: no burst, from beginning to end.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		refuse := each(wiretest.Step{Status: 503, Times: -1})
		n.serve(wire.DefaultAddr, wiretest.Script{GoalState: refuse, Provisioning: refuse})
		got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
		if !errors.Is(got.err, context.DeadlineExceeded) {
			t.Fatal(got.err)
		}
		for i, at := range got.at[1:] {
			want := sec
			switch before := got.at[i]; {
			case before >= 20*time.Minute:
				want = 30 * sec
			case before >= 5*time.Minute:
				want = 5 * sec
			case i == 0:
				want = 250 * ms
			case i == 1:
				want = 500 * ms
			}
			if gap := at - got.at[i]; !near(gap, want, want) {
				t.Errorf("failure %d at %s, %s after the one before; want %s", i+2, at, gap, want)
			}
		}
		for i, f := range got.failed {
			if want := i >= 3 && i%2 == 1; (f.Via == wire.ViaProvisioning) != want {
				t.Errorf("attempt %d went by %s", i+1, f.Via)
			}
		}
		// 5 minutes of a second each, 15 of five, 40 of thirty, and the two short ones.
		if got := len(got.failed); got < 540 || got > 590 {
			t.Errorf("%d attempts in an hour", got)
		}
	})
}

// When the attempts start if none is ever answered.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		hang := each(wiretest.Step{Hang: true, Times: -1})
		n.serve(wire.DefaultAddr, wiretest.Script{GoalState: hang, Provisioning: hang})
		start := time.Now()
		got := try(t, n.reporter(wire.DefaultAddr), 3*time.Minute)
		want := []time.Duration{
			0,                     // first
			3 * sec,               // beside it
			6*sec + 250*ms,        // after 3 s and a pause
			12*sec + 750*ms,       // 6 s
			25*sec + 750*ms,       // 12 s
			50*sec + 750*ms,       // 24 s
			60 * sec,              // the first one is at its end: the sixth is alone, for 3 s and more
			60*sec + 48*sec + sec, // 48 s
			112 * sec,             // the sixth has ended at 110.75 s: the eighth is alone, 3 s
			169 * sec,             // and at its end
			172 * sec,             // the ninth too
		}
		var starts []time.Duration
		for _, d := range n.dials {
			starts = append(starts, d.start.Sub(start))
		}
		const pauses = 4750 * ms
		if diff := cmp.Diff(want, starts, cmp.Comparer(func(a, b time.Duration) bool { return near(a, b, pauses) })); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
		if n.most > 2 {
			t.Errorf("%d connections at a time", n.most)
		}
		first := got.failed[slices.IndexFunc(got.failed, func(a wire.Attempt) bool { return a.N == 1 })]
		if diff := cmp.Diff("wire: GET http://168.63.129.16/machine/?comp=goalstate: no answer in 1m0s", text(first.Err)); diff != "" {
			t.Errorf("first attempt (-want +got):\n%s", diff)
		}
	})
}

// A failure with an answer sets the patience back: a later request that hangs
// costs 3 s again.
func TestPatienceIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve(wire.DefaultAddr, wiretest.Script{
			GoalState: each(
				wiretest.Step{Hang: true, Times: 3}, // attempts 1 to 3
				wiretest.Step{Hang: true},           // attempt 5
			),
			Provisioning: each(wiretest.Step{Status: 503, Times: -1}), // attempts 4 and 6
		})
		got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
		want := 12*sec + 750*ms + sec + 3*sec + sec + sec // 4 fails, 5 is given 3 s, 6 fails, 7 gets through
		if got.err != nil || got.out.Attempts != 7 || !near(got.took, want, 3750*ms) {
			t.Errorf("%d attempts in %s, %v; want 7 in %s", got.out.Attempts, got.took, got.err, want)
		}
	})
}

// What Report says when its context ends first.
func TestReportEnds(t *testing.T) {
	reason := errors.New("the hook's time is up")
	tests := []struct {
		name     string
		script   *wiretest.Script // nil: connections are refused
		limit    time.Duration
		attempts int
		want     string
	}{
		{
			"refused", nil, 100 * ms, 1,
			"wire: Ready not reported in 100ms: the hook's time is up; last failure: " +
				"wire: GET http://168.63.129.16/machine/?comp=goalstate: dial tcp4 168.63.129.16:80: connection refused",
		},
		{
			"status", &wiretest.Script{Health: each(wiretest.Step{Status: 410, Body: new("stale\n")})}, 100 * ms, 1,
			"wire: Ready not reported in 100ms: the hook's time is up; last failure: " +
				`wire: http://168.63.129.16/machine/?comp=health: 410 Gone: "stale"`,
		},
		{
			"no answer yet", &wiretest.Script{GoalState: each(wiretest.Step{Hang: true, Times: -1})}, 5 * sec, 2,
			"wire: Ready not reported in 5s: the hook's time is up; last failure: " +
				"wire: GET http://168.63.129.16/machine/?comp=goalstate: no answer in 5s",
		},
		{"over before it began", nil, 0, 0, "wire: Ready not reported: the hook's time is up"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				if tt.script != nil {
					n.serve(wire.DefaultAddr, *tt.script)
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), tt.limit, reason)
				defer cancel()
				start := time.Now()
				out, err := n.reporter(wire.DefaultAddr).Report(ctx, wire.Ready())
				if diff := cmp.Diff(tt.want, text(err)); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if !errors.Is(err, reason) {
					t.Error("the error does not wrap the context's cause")
				}
				if took := time.Since(start); took != tt.limit {
					t.Errorf("returned after %s", took)
				}
				if diff := cmp.Diff(wire.Outcome{Attempts: tt.attempts}, out, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The last failure can be asked for.
func TestReportWrapsStatusError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve(wire.DefaultAddr, wiretest.Script{GoalState: each(wiretest.Step{
			Status: 503, Header: map[string]string{"Retry-After": "9"}, Body: new(strings.Repeat("x", 200)),
		})})
		got := try(t, n.reporter(wire.DefaultAddr), sec)
		status, ok := errors.AsType[*wire.StatusError](got.err)
		if !ok {
			t.Fatalf("got %v, want a StatusError in it", got.err)
		}
		want := &wire.StatusError{
			Code:       http.StatusServiceUnavailable,
			URL:        "http://168.63.129.16/machine/?comp=goalstate",
			Body:       strings.Repeat("x", 128),
			RetryAfter: 9 * sec,
		}
		if diff := cmp.Diff(want, status); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
	})
}
