package wire_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// faults are what can go wrong, and what each may cost: so many attempts, and so
// much time, of which so much is pauses, that is, subject to jitter.
var faults = []struct {
	name     string
	script   wiretest.Script
	attempts int
	via      wire.Via
	took     time.Duration
	pauses   time.Duration
}{
	{name: "none", attempts: 1, via: wire.ViaHealth},

	// Requests without an answer.
	{
		name:     "goal state hangs once",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Hang: true})},
		attempts: 2, via: wire.ViaHealth, took: 3 * sec,
	},
	{
		name:     "health hangs once",
		script:   wiretest.Script{Health: each(wiretest.Step{Hang: true})},
		attempts: 2, via: wire.ViaHealth, took: 3 * sec,
	},
	{
		name:     "goal state and then health hang",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Hang: true}), Health: each(wiretest.Step{Hang: true})},
		attempts: 3, via: wire.ViaHealth, took: 6*sec + 250*ms, pauses: 250 * ms,
	},
	{
		name:     "goal state hangs three times",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Hang: true, Times: 3})},
		attempts: 4, via: wire.ViaProvisioning, took: 12*sec + 750*ms, pauses: 750 * ms,
	},
	{
		name:     "health hangs three times",
		script:   wiretest.Script{Health: each(wiretest.Step{Hang: true, Times: 3})},
		attempts: 4, via: wire.ViaProvisioning, took: 12*sec + 750*ms, pauses: 750 * ms,
	},
	{
		name:     "hangs after a failure",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Status: 503}, wiretest.Step{Hang: true})},
		attempts: 3, via: wire.ViaHealth, took: 250*ms + 3*sec, pauses: 250 * ms,
	},
	{
		name: "a failure beside one that hangs",
		script: wiretest.Script{GoalState: each(
			wiretest.Step{Hang: true}, wiretest.Step{Status: 503}, wiretest.Step{Status: 503})},
		attempts: 4, via: wire.ViaProvisioning, took: 3*sec + 750*ms, pauses: 750 * ms,
	},
	{
		name:     "body hangs",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Trickle: time.Hour})},
		attempts: 2, via: wire.ViaHealth, took: 3 * sec,
	},
	{
		name:     "body of an error hangs",
		script:   wiretest.Script{Health: each(wiretest.Step{Status: 503, BodyBytes: 9, Trickle: time.Hour})},
		attempts: 2, via: wire.ViaHealth, took: 3 * sec,
	},
	{
		name:     "body of a success hangs", // it can be a page
		script:   wiretest.Script{Health: each(wiretest.Step{BodyBytes: 9, Trickle: time.Hour})},
		attempts: 2, via: wire.ViaHealth, took: 3 * sec,
	},

	// Slow servers.
	{
		name: "15 s for each answer",
		script: wiretest.Script{
			GoalState:    each(wiretest.Step{Delay: 15 * sec, Times: -1}),
			Health:       each(wiretest.Step{Delay: 15 * sec, Times: -1}),
			Provisioning: each(wiretest.Step{Delay: 15 * sec, Times: -1}),
		},
		attempts: 5, via: wire.ViaHealth, took: 30 * sec,
	},
	{
		name: "55 s for each answer",
		script: wiretest.Script{
			GoalState:    each(wiretest.Step{Delay: 55 * sec, Times: -1}),
			Health:       each(wiretest.Step{Delay: 55 * sec, Times: -1}),
			Provisioning: each(wiretest.Step{Delay: 55 * sec, Times: -1}),
		},
		attempts: 7, via: wire.ViaHealth, took: 110 * sec,
	},
	{
		name:     "15 s for the first goal state",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Delay: 15 * sec})},
		attempts: 2, via: wire.ViaHealth, took: 3 * sec,
	},
	{
		name:     "2.9 s for each answer",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Delay: 2900 * ms}), Health: each(wiretest.Step{Delay: 2900 * ms})},
		attempts: 1, via: wire.ViaHealth, took: 5800 * ms,
	},
	{
		name: "slow beside one that hangs",
		script: wiretest.Script{
			GoalState:    each(wiretest.Step{Hang: true}, wiretest.Step{Delay: 5 * sec, Times: -1}),
			Health:       each(wiretest.Step{Delay: 5 * sec, Times: -1}),
			Provisioning: each(wiretest.Step{Delay: 5 * sec, Times: -1}),
		},
		attempts: 3, via: wire.ViaHealth, took: 6*sec + 250*ms + 10*sec, pauses: 250 * ms,
	},
	{
		name:     "a byte a second, once",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Trickle: sec})},
		attempts: 2, via: wire.ViaHealth, took: 3 * sec,
	},
	{
		name:     "a byte a second, always",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Trickle: sec, Times: -1})},
		attempts: 4, via: wire.ViaProvisioning, took: 12*sec + 750*ms, pauses: 750 * ms,
	},

	// Connections that end.
	{
		name:     "closed instead of a goal state",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Close: true, Times: 2})},
		attempts: 3, via: wire.ViaHealth, took: 750 * ms, pauses: 750 * ms,
	},
	{
		name:     "closed instead of an answer to health",
		script:   wiretest.Script{Health: each(wiretest.Step{Close: true, Times: 2})},
		attempts: 3, via: wire.ViaHealth, took: 750 * ms, pauses: 750 * ms,
	},
	{
		name:     "no HTTP",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Raw: new("SSH-2.0-x\r\n")})},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},
	{
		name:     "header cut short",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Raw: new("HTTP/1.1 200 OK\r\nContent-")})},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},
	{
		name:     "body cut short",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Withhold: 20})},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},
	{
		name:     "chunked body cut short",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Withhold: 20, Chunked: true})},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},
	{
		name:     "HTTP/1.0 body cut short", // there is no length: only the document shows it
		script:   wiretest.Script{GoalState: each(wiretest.Step{Withhold: 20, HTTP10: true})},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},

	// Goal states.
	{
		name: "goal state changes before health",
		script: wiretest.Script{
			GoalStates: []wiretest.GoalState{{Incarnation: "7", ContainerID: "c", InstanceID: "i"}, {Incarnation: "8", ContainerID: "c", InstanceID: "i"}},
			GoalState:  each(wiretest.Step{Advance: true}),
		},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},
	{
		name: "container changes, incarnation stays",
		script: wiretest.Script{
			GoalStates: []wiretest.GoalState{{Incarnation: "1", ContainerID: "c", InstanceID: "i"}, {Incarnation: "1", ContainerID: "d", InstanceID: "i"}},
			GoalState:  each(wiretest.Step{Advance: true}),
		},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},
	{
		name:     "empty twice",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Body: new(""), Times: 2})},
		attempts: 3, via: wire.ViaHealth, took: 750 * ms, pauses: 750 * ms,
	},
	{
		name:     "a proxy's page, always",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Body: new("<html>sign in</html>"), Times: -1})},
		attempts: 4, via: wire.ViaProvisioning, took: 1750 * ms, pauses: 1750 * ms,
	},

	// Ways.
	{
		name: "no short way",
		script: wiretest.Script{
			GoalState:    each(wiretest.Step{Status: 503, Times: 5}),
			Provisioning: each(wiretest.Step{Status: 404, Times: -1}),
		},
		// Attempts 1, 2, 3, 5 and 7 find no goal state; 4, 6 and 8 no short way.
		attempts: 9, via: wire.ViaHealth, took: 6750 * ms, pauses: 6750 * ms,
	},
	{
		name:     "health is 410 for ever",
		script:   wiretest.Script{Health: each(wiretest.Step{Status: 410, Times: -1})},
		attempts: 4, via: wire.ViaProvisioning, took: 1750 * ms, pauses: 1750 * ms,
	},

	// Retry-After.
	{
		name:     "Retry-After",
		script:   wiretest.Script{Health: each(wiretest.Step{Status: 429, Header: map[string]string{"Retry-After": "7"}})},
		attempts: 2, via: wire.ViaHealth, took: 7 * sec,
	},
	{
		name:     "Retry-After that is too long",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Status: 503, Header: map[string]string{"Retry-After": "3600"}})},
		attempts: 2, via: wire.ViaHealth, took: 30 * sec,
	},
	{
		name:     "Retry-After that is too short",
		script:   wiretest.Script{GoalState: each(wiretest.Step{Status: 503, Header: map[string]string{"Retry-After": "0"}})},
		attempts: 2, via: wire.ViaHealth, took: 250 * ms, pauses: 250 * ms,
	},
}

func TestFaults(t *testing.T) {
	tests := slices.Clone(faults)
	// Each status at each of the two requests, so many times. No status is final.
	for _, code := range []int{204, 301, 302, 307, 400, 401, 403, 404, 405, 410, 421, 429, 500, 501, 502, 503, 504} {
		for _, n := range []struct {
			times, attempts int
			via             wire.Via
			took            time.Duration
		}{
			{1, 2, wire.ViaHealth, 250 * ms},
			{2, 3, wire.ViaHealth, 750 * ms},
			{3, 4, wire.ViaProvisioning, 1750 * ms},
			{-1, 4, wire.ViaProvisioning, 1750 * ms},
		} {
			step := wiretest.Step{Status: code, Body: new("<html>no</html>"), Times: n.times}
			if code == http.StatusNoContent {
				step.Body = new("")
			}
			steps := each(step)
			test := faults[0]
			test.attempts, test.via, test.took, test.pauses = n.attempts, n.via, n.took, n.took
			test.name = fmt.Sprintf("goal state %d x%d", code, n.times)
			test.script = wiretest.Script{GoalState: steps}
			tests = append(tests, test)
			if code >= 300 {
				test.name = fmt.Sprintf("health %d x%d", code, n.times)
				test.script = wiretest.Script{Health: steps}
				tests = append(tests, test)
			}
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve(wire.DefaultAddr, tt.script)
				got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
				if got.err != nil {
					t.Fatal(got.err)
				}
				if got.out.Attempts != tt.attempts || got.out.Via != tt.via || !near(got.took, tt.took, tt.pauses) {
					t.Errorf("got %d attempts, %s, %s; want %d, %s, %s",
						got.out.Attempts, got.out.Via, got.took, tt.attempts, tt.via, tt.took)
				}
				if n.most > 2 {
					t.Errorf("%d connections at a time", n.most)
				}
				if len(n.dials) != tt.attempts {
					t.Errorf("%d connections for %d attempts", len(n.dials), tt.attempts)
				}
				for _, f := range got.failed {
					t.Log(f.N, f.Err)
				}
			})
		})
	}
}

// Documents as in TestParseGoalState, through everything: those that are good
// make a check-in at the first attempt, those that are bad one at the JSON endpoint.
func TestDocuments(t *testing.T) {
	check := func(t *testing.T, step wiretest.Step, attempts int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			step.Times = -1
			n := newNetwork(t)
			n.serve(wire.DefaultAddr, wiretest.Script{
				GoalStates: []wiretest.GoalState{{Incarnation: "1", ContainerID: "c", InstanceID: "i"}},
				GoalState:  each(step),
			})
			got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
			if got.err != nil || got.out.Attempts != attempts {
				t.Errorf("%d attempts, %v; want %d", got.out.Attempts, got.err, attempts)
			}
		})
	}
	for _, tt := range goodDocuments {
		t.Run(tt.name, func(t *testing.T) {
			check(t, wiretest.Step{Body: &tt.doc}, 1)
			check(t, wiretest.Step{Body: &tt.doc, Chunked: true}, 1)
			check(t, wiretest.Step{Body: &tt.doc, HTTP10: true}, 1)
		})
	}
	for _, tt := range badDocuments {
		t.Run(tt.name, func(t *testing.T) { check(t, wiretest.Step{Body: &tt.doc}, 4) })
	}
}
