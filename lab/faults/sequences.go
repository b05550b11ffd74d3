package faults

import (
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// The requests as Result.Requests has them.
const (
	get   = "GET goal state"
	post  = "POST health"
	short = "POST provisioning"
)

const ms = time.Millisecond

func repeat(s wiretest.Step, times int) wiretest.Step {
	s.Times = times
	return s
}

func steps(s ...wiretest.Step) []wiretest.Step { return s }

// incarnations are goal states of a machine that is being changed.
func incarnations(n int) []wiretest.GoalState {
	all := make([]wiretest.GoalState, n)
	for i := range all {
		all[i] = wiretest.DefaultGoalState
		all[i].Incarnation = string(rune('1' + i))
	}
	return all
}

// sequences are faults one after the other, or at both ways to say Ready.
func sequences() []Case {
	hang, advance := wiretest.Step{Hang: true}, wiretest.Step{Advance: true}
	moved := wiretest.DefaultGoalState
	moved.ContainerID = "9f0d3e52-31a0-4b5c-8f4f-0a8e6c0b7d11"
	all := []Case{
		{Name: "no fault", Want: Want{Via: "health", Requests: []string{get, post}}, Peer: atOnce},
		{
			Name:   "goal state changes before health",
			Script: wiretest.Script{GoalStates: incarnations(2), GoalState: steps(advance)},
			Want:   Want{Within: 250 * ms, Via: "health", Requests: []string{get, post, get, post}, Says: "410 Gone"},
		},
		{
			Name:   "goal state changes before every health",
			Script: wiretest.Script{GoalStates: incarnations(9), GoalState: steps(repeat(advance, -1))},
			Want:   Want{Within: 1750 * ms, Via: "provisioning-health", Requests: []string{get, post, get, post, get, post, short}},
		},
		{
			Name:   "container changes, incarnation stays",
			Script: wiretest.Script{GoalStates: []wiretest.GoalState{wiretest.DefaultGoalState, moved}, GoalState: steps(advance)},
			Want:   Want{Within: 250 * ms, Via: "health", Requests: []string{get, post, get, post}},
		},
		{
			Name:   "goal state 503, then connection reset",
			Script: wiretest.Script{GoalState: steps(status(503), wiretest.Step{Reset: true})},
			Want:   Want{Within: 750 * ms, Via: "health", Requests: []string{get, get, get, post}},
		},
		{
			Name:   "goal state 503, then health 410",
			Script: wiretest.Script{GoalState: steps(status(503)), Health: steps(status(410))},
			Want:   Want{Within: 750 * ms, Via: "health", Requests: []string{get, get, post, get, post}},
		},
		{
			Name:   "goal state cut short twice",
			Script: wiretest.Script{GoalState: steps(wiretest.Step{Withhold: 200, HTTP10: true, Times: 2})},
			Want:   Want{Within: 750 * ms, Via: "health"}, Peer: afterburn3,
		},
		{
			Name:   "goal state shorter than announced twice",
			Script: wiretest.Script{GoalState: steps(wiretest.Step{Withhold: 200, Times: 2})},
			Want:   Want{Within: 750 * ms, Via: "health"}, Peer: talos2,
		},
		{
			Name:   "goal state empty twice",
			Script: wiretest.Script{GoalState: steps(wiretest.Step{Body: new(""), Times: 2})},
			Want:   Want{Within: 750 * ms, Via: "health"}, Peer: afterburn3,
		},
		{
			Name:   "goal state hangs, then health hangs",
			Script: wiretest.Script{GoalState: steps(hang), Health: steps(hang)},
			Want:   Want{Within: 6250 * ms, Via: "health"},
		},
		{
			Name:   "goal state 503, then hangs",
			Script: wiretest.Script{GoalState: steps(status(503), hang)},
			Want:   Want{Within: 3250 * ms, Via: "health"},
		},
		{
			Name:   "goal state 404 for ever, JSON endpoint 503 twice",
			Script: wiretest.Script{GoalState: steps(repeat(status(404), -1)), Provisioning: steps(repeat(status(503), 2))},
			Want:   Want{Within: 5750 * ms, Via: "provisioning-health"},
		},
		{
			Name:   "goal state 503 five times, JSON endpoint 404 for ever",
			Script: wiretest.Script{GoalState: steps(repeat(status(503), 5)), Provisioning: steps(repeat(status(404), -1))},
			Want:   Want{Within: 6750 * ms, Via: "health"},
		},
		{
			Name:   "health 410 three times, JSON endpoint hangs for ever",
			Script: wiretest.Script{Health: steps(repeat(status(410), 3)), Provisioning: steps(repeat(hang, -1))},
			Want:   Want{Within: 4750 * ms, Via: "health"},
		},
		{
			Name: "every answer after 2.5 s", Script: slow(2500 * ms),
			Want: Want{Within: 5 * time.Second, Via: "health", Requests: []string{get, post}},
		},
		{Name: "every answer after 15 s", Script: slow(15 * time.Second), Want: Want{Within: 30 * time.Second, Readys: -1}},
		{
			Name: "nothing is answered, ever", Script: everywhere(hang), Start: Start{Timeout: 20 * time.Second},
			Want: Want{Never: true, Status: 1, Within: 20 * time.Second, Says: "no answer in"},
		},
		{
			Name: "every answer is a page with 200, for ever", Script: everywhere(page), Start: Start{Timeout: 8 * time.Second},
			Want: Want{Never: true, Status: 1, Within: 8 * time.Second, Says: "document type declaration"},
		},
		{
			Name:   "every report is answered by a page with 200, for ever",
			Script: wiretest.Script{Health: steps(repeat(page, -1)), Provisioning: steps(repeat(page, -1))}, Start: Start{Timeout: 8 * time.Second},
			Want: Want{Never: true, Status: 1, Within: 8 * time.Second, Says: "is not the WireServer's answer"},
		},
		{
			Name:   "every answer is a page with 200, three times",
			Script: wiretest.Script{GoalState: steps(repeat(page, 3)), Health: steps(repeat(page, 3)), Provisioning: steps(repeat(page, 3))},
			Want:   Want{Within: 7750 * ms, Via: "provisioning-health"},
		},
		{
			Name:   "every report is answered by a page with 200, three times",
			Script: wiretest.Script{Health: steps(repeat(page, 3)), Provisioning: steps(repeat(page, 3))},
			Want:   Want{Within: 2750 * ms, Via: "health"},
		},
		{
			Name: "everything is 503, for ever", Script: everywhere(status(503)), Start: Start{Timeout: 8 * time.Second},
			Want: Want{Never: true, Status: 1, Within: 8 * time.Second, Says: "503 Service Unavailable"},
		},
	}
	for i := range all {
		all[i].Group = "One fault after the other"
	}
	return all
}

// everywhere is a server of which every answer is the same, for ever.
func everywhere(s wiretest.Step) wiretest.Script {
	s = repeat(s, -1)
	return wiretest.Script{GoalState: steps(s), Health: steps(s), Provisioning: steps(s)}
}

func slow(d time.Duration) wiretest.Script {
	return everywhere(wiretest.Step{Delay: wiretest.Duration(d)})
}

// retryAfters are what a server can ask for.
func retryAfters() []Case {
	ask := func(name, value string, costs time.Duration) Case {
		step := status(503)
		step.Header = map[string]string{"Retry-After": value, "Date": "Mon, 30 Nov 2026 12:00:00 GMT"}
		return Case{
			Name: "Retry-After: " + name, Group: "Retry-After", Script: wiretest.Script{GoalState: steps(step)},
			Want: Want{Within: costs, Via: "health", Requests: []string{get, get, post}},
		}
	}
	return []Case{
		ask("2 (seconds)", "2", 2*time.Second),
		ask("a date 3 s after the answer's own", "Mon, 30 Nov 2026 12:00:03 GMT", 3*time.Second),
		ask("a date that has passed", "Sun, 29 Nov 2026 12:00:00 GMT", 250*ms),
		ask("3600, more than is waited", "3600", 30*time.Second),
		ask("a timestamp for seconds", "1764504000", 250*ms),
		ask("a date in the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT", 250*ms),
		ask("negative", "-5", 250*ms),
		ask("words", "soon", 250*ms),
		ask("no number at all", "99999999999999999999999999", 250*ms),
	}
}
