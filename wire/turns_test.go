package wire_test

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// A fallback address is used beside a slow server, and by half of the retries.
func TestFallback(t *testing.T) {
	hang := wiretest.Script{
		GoalState:    each(wiretest.Step{Hang: true, Times: -1}),
		Provisioning: each(wiretest.Step{Hang: true, Times: -1}),
	}
	refuse := wiretest.Script{
		GoalState:    each(wiretest.Step{Status: 503, Times: -1}),
		Provisioning: each(wiretest.Step{Status: 503, Times: -1}),
	}
	tests := []struct {
		name             string
		server, fallback *wiretest.Script // nil: nothing answers there
		want             netip.Addr
		attempts         int
		took, pauses     time.Duration
	}{
		{"server well", &wiretest.Script{}, nil, other, 1, 0, 0},
		{"server hangs", &hang, &wiretest.Script{}, wire.DefaultAddr, 2, 3 * sec, 0},
		{"server not there", nil, &wiretest.Script{}, wire.DefaultAddr, 2, 2*sec + 250*ms, 250 * ms},
		{"server refuses", &refuse, &wiretest.Script{}, wire.DefaultAddr, 2, 250 * ms, 250 * ms},
		{
			"server hangs once, fallback not there",
			&wiretest.Script{GoalState: each(wiretest.Step{Hang: true})}, nil,
			other, 4, 3*sec + 2*sec + 250*ms + 2*sec + 500*ms, 750 * ms,
		},
		{
			"server refuses three times, fallback not there",
			&wiretest.Script{GoalState: each(wiretest.Step{Status: 503, Times: 3})}, nil,
			other, 4, 250*ms + 2*sec + 500*ms + 2*sec + sec, 1750 * ms,
		},
		{
			"server refuses once, fallback hangs", // the third attempt goes to where the second is not
			&wiretest.Script{GoalState: each(wiretest.Step{Status: 503})}, &hang,
			other, 3, 250*ms + 3*sec, 250 * ms,
		},
		{
			"both hang, the fallback once",
			&hang, &wiretest.Script{GoalState: each(wiretest.Step{Hang: true})},
			wire.DefaultAddr, 3, 3*sec + 3*sec + 250*ms, 250 * ms,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				for at, script := range map[netip.Addr]*wiretest.Script{other: tt.server, wire.DefaultAddr: tt.fallback} {
					if script == nil {
						n.lose(at, time.Hour)
					} else {
						n.serve(at, *script)
					}
				}
				r := n.reporter(other)
				r.Fallback = wire.DefaultAddr
				got := try(t, r, time.Hour)
				if got.err != nil {
					t.Fatal(got.err)
				}
				if got.out.Server != tt.want || got.out.Attempts != tt.attempts || !near(got.took, tt.took, tt.pauses) {
					t.Errorf("got %s, %d attempts, %s; want %s, %d, %s",
						got.out.Server, got.out.Attempts, got.took, tt.want, tt.attempts, tt.took)
				}
			})
		})
	}
}

// Fallbacks that are none.
func TestNoFallback(t *testing.T) {
	for _, fallback := range []netip.Addr{{}, wire.DefaultAddr, netip.MustParseAddr("fd00::1"), netip.MustParseAddr("224.0.0.1")} {
		t.Run(fallback.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				r := n.reporter(wire.DefaultAddr)
				r.Fallback = fallback
				got := try(t, r, time.Minute)
				for _, f := range got.failed {
					if f.Server != wire.DefaultAddr {
						t.Errorf("attempt %d went to %s", f.N, f.Server)
					}
				}
			})
		})
	}
}

// No server answers for 10 s: from then on the attempts follow the table of variations.
func TestDevice(t *testing.T) {
	bound := func(devices []string) string {
		var b strings.Builder
		for _, d := range devices {
			b.WriteByte(pick(d != "", 'B', '.'))
		}
		return b.String()
	}
	tests := []struct {
		name   string
		device func() string
		serve  *wiretest.Script // nil: nothing answers
		want   string           // of the first 16 attempts
		server netip.Addr
	}{
		// An attempt at a server that is not there takes 2 s, and the pause: the
		// fifth starts at 10.75 s.
		{"not heard", func() string { return "eth0" }, nil, "....B.BB.B..B.BB", wire.DefaultAddr},
		{"not heard, no default route", func() string { return "" }, nil, "................", wire.DefaultAddr},
		{"not heard, no function", nil, nil, "................", wire.DefaultAddr},
		{"not heard, loopback", func() string { return "eth0" }, nil, "................", netip.MustParseAddr("127.0.0.1")},
		{
			"heard", func() string { return "eth0" },
			&wiretest.Script{GoalState: each(wiretest.Step{Status: 503, Times: -1}), Provisioning: each(wiretest.Step{Status: 503, Times: -1})},
			"................",
			wire.DefaultAddr,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				if tt.serve != nil {
					n.serve(tt.server, *tt.serve)
				} else {
					n.lose(tt.server, time.Hour)
				}
				r := n.reporter(tt.server)
				r.Device = tt.device
				got := try(t, r, 2*time.Minute)
				var told, dialled []string
				for i, f := range got.failed[:16] {
					told = append(told, f.Device)
					dialled = append(dialled, n.dials[i].Device)
				}
				if diff := cmp.Diff(tt.want, bound(told)); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(told, dialled); diff != "" {
					t.Errorf("dialled (-told +dialled):\n%s", diff)
				}
			})
		})
	}
}

// A server that is heard, then falls silent, is asked through the device too.
func TestDeviceAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		refuse := each(wiretest.Step{Status: 503, Times: -1})
		n.serve(wire.DefaultAddr, wiretest.Script{GoalState: refuse, Provisioning: refuse})
		time.AfterFunc(30*sec, func() { n.lose(wire.DefaultAddr, time.Hour) })
		r := n.reporter(wire.DefaultAddr)
		r.Device = func() string { return "eth0" }
		got := try(t, r, time.Minute)
		for i, f := range got.failed {
			if f.Device != "" {
				if got.at[i] < 40*sec {
					t.Errorf("bound at %s, when it was heard until 30 s", got.at[i])
				}
				return
			}
		}
		t.Error("never bound")
	})
}

// What the first twelve attempts do.
func TestVariations(t *testing.T) {
	var way, address, bound strings.Builder
	for n := 1; n <= 12; n++ {
		p, f, b := wire.Variation(n)
		way.WriteByte(pick(p, 'p', 'h'))
		address.WriteByte(pick(f, 'F', 's'))
		bound.WriteByte(pick(b, 'B', '.'))
	}
	got := map[string]string{"way": way.String(), "address": address.String(), "bound": bound.String()}
	want := map[string]string{
		"way":     "hhhphphphphp",
		"address": "sFFssFFssFFs",
		"bound":   ".B..B.BB.B..",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variations (-want +got):\n%s", diff)
	}
}

func TestVariationsReachEverything(t *testing.T) {
	for from := 4; from < 100; from++ {
		ways, all := map[[2]bool]bool{}, map[[3]bool]bool{}
		for n := from; n < from+8; n++ {
			p, f, b := wire.Variation(n)
			if n < from+4 {
				ways[[2]bool{p, f}] = true
			}
			all[[3]bool{p, f, b}] = true
		}
		if len(ways) != 4 || len(all) != 8 {
			t.Errorf("from attempt %d on: %d of 4 in four attempts, %d of 8 in eight", from, len(ways), len(all))
		}
	}
}

func pick(b bool, yes, no byte) byte {
	if b {
		return yes
	}
	return no
}
