package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// The requests as Result.Requests has them.
const (
	get   = "GET goal state"
	post  = "POST health"
	short = "POST provisioning"
)

const (
	ms       = time.Millisecond
	megabyte = 1 << 20
)

// Faults that show at once cost pauses of 250 ms, 500 ms and 1 s before the JSON endpoint's turn. Of requests without an
// answer the first costs 3 s, and the others what the patience grows to.
const (
	fast   = 1750 * ms
	silent = 12750 * ms
)

var (
	noPeer  = Peer{}
	atOnce  = Peer{"Afterburn, Talos", 0}
	curl    = Peer{"curl --retry, where it is three times", 3 * time.Second}
	waagent = Peer{"WALinuxAgent, where it is once", 13 * time.Second}
)

var (
	hang = wiretest.Step{Hang: true}
	// page is what a proxy answers in the WireServer's place.
	page = wiretest.Step{
		Status: 200, Body: new(`<!DOCTYPE html><html><head><title>Sign in</title></head><body>proxy</body></html>`), Foreign: true,
	}
)

func status(code int) wiretest.Step {
	return wiretest.Step{Status: code, Body: new(fmt.Sprintf("<html><body>%d</body></html>", code))}
}

// always are the steps of a server whose every answer is this.
func always(s wiretest.Step) []wiretest.Step {
	s.Times = -1
	return []wiretest.Step{s}
}

// everywhere is a server of which every answer is the same.
func everywhere(s wiretest.Step) wiretest.Script {
	return wiretest.Script{GoalState: always(s), Health: always(s), Provisioning: always(s)}
}

// fault is a wrong answer to a request, for ever, so that the JSON endpoint must do.
type fault struct {
	name   string
	step   wiretest.Step
	within time.Duration
	peer   Peer
}

// answers are faults that differ by what the kernel does, or by what they cost in memory. Every status, other counts and the
// shapes of a goal state are those of wire.TestFaults and wire.TestDocuments.
func answers() []Case {
	body := func(text string) wiretest.Step { return wiretest.Step{Body: &text} }
	atBoth := []fault{
		{"503 Service Unavailable", status(503), fast, curl},
		{"410 Gone", status(410), fast, curl},
		// A client that follows turns its POST into a GET, and takes that success for its own.
		{"302 to itself", wiretest.Step{Status: 302, Header: map[string]string{"Location": "/?comp=versions"}}, fast, noPeer},
		{"connection reset", wiretest.Step{Reset: true}, fast, curl},
		{"connection closed", wiretest.Step{Close: true}, fast, noPeer},
		{"no answer", hang, silent, waagent},
		{"not HTTP", wiretest.Step{Raw: new("SSH-2.0-OpenSSH_9.2\r\n")}, fast, noPeer},
		{"body is a proxy's page", page, fast, noPeer},
	}
	atGoalState := append(slices.Clone(atBoth),
		fault{"header of 1 MB", wiretest.Step{HeaderBytes: megabyte}, fast, noPeer},
		fault{"body of a byte a second", wiretest.Step{Trickle: time.Second}, silent, noPeer},
		fault{"body of 50,000 attributes", body("<GoalState " + strings.Repeat(`a="" `, 50_000) + "/>"), fast, noPeer},
		fault{"body nested 80,000 deep", body("<GoalState>" + strings.Repeat("<a>", 80_000)), fast, noPeer},
		fault{"body of 20,000 containers", body("<GoalState>" + strings.Repeat("<Container/>", 20_000)), fast, noPeer},
		fault{"identifier of 900 KB", body("<GoalState><Incarnation>" + strings.Repeat("1", 900<<10)), fast, noPeer},
		fault{"body of 100 MB", wiretest.Step{BodyBytes: 100 * megabyte, Chunked: true, Body: new("<GoalState>")}, fast, noPeer},
	)
	var all []Case
	for _, f := range atGoalState {
		script := wiretest.Script{GoalState: always(f.step)}
		all = append(all, f.play("goal state", script, []string{get, get, get, short}))
	}
	for _, f := range atBoth {
		script := wiretest.Script{Health: always(f.step)}
		all = append(all, f.play("health", script, []string{get, post, get, post, get, post, short}))
	}
	return all
}

func (f fault) play(at string, script wiretest.Script, requests []string) Case {
	c := Case{Name: at + ": " + f.name + " for ever", Group: "Wrong answers", Script: script, Peer: f.peer}
	c.Want = Want{Within: f.within, Via: "provisioning-health", Requests: requests}
	if f.within == fast {
		c.Want.Says = journal.AttemptFailed.Message
	}
	return c
}

// sequences are faults one after the other, or of every answer.
func sequences() []Case {
	moved := wiretest.DefaultGoalState
	moved.Incarnation = "8"
	all := []Case{
		{Name: "no fault", Want: Want{Via: "health", Requests: []string{get, post}}, Peer: atOnce},
		{
			Name:   "goal state changes before health",
			Script: wiretest.Script{GoalStates: []wiretest.GoalState{wiretest.DefaultGoalState, moved}, GoalState: []wiretest.Step{{Advance: true}}},
			Want:   Want{Within: 250 * ms, Via: "health", Requests: []string{get, post, get, post}, Says: "410 Gone"},
		},
		{
			// The report may go out on the connection before that is known to be closed: then it costs a retry.
			Name:   "goal state: connection closed behind it, unannounced",
			Script: wiretest.Script{GoalState: always(wiretest.Step{CloseAfter: true})}, Want: Want{Within: fast},
		},
		{
			Name: "health: header of 1 MB", Script: wiretest.Script{Health: always(wiretest.Step{HeaderBytes: megabyte})},
			Want: Want{Within: fast, Readys: -1, Says: journal.AttemptFailed.Message},
		},
		{
			// It can be a page, so it is waited for; a fresh attempt starts beside it.
			Name:   "health: a body that never ends",
			Script: wiretest.Script{Health: []wiretest.Step{{BodyBytes: 100 * megabyte, Trickle: time.Second}}},
			Want:   Want{Within: 3 * time.Second, Via: "health", Readys: 2},
		},
		{
			Name: "goal state hangs, then health hangs", Script: wiretest.Script{GoalState: []wiretest.Step{hang}, Health: []wiretest.Step{hang}},
			Want: Want{Within: 6250 * ms, Via: "health"},
		},
		{
			Name: "every answer after 15 s", Script: everywhere(wiretest.Step{Delay: 15 * time.Second}),
			Want: Want{Within: 30 * time.Second, Readys: -1},
		},
		{
			Name: "nothing is answered, ever", Script: everywhere(hang), Start: Start{Timeout: 20 * time.Second},
			Want: Want{Never: true, Status: 1, Within: 20 * time.Second, Says: "no answer in"},
		},
		{
			Name: "every answer is a page with 200, for ever", Script: everywhere(page), Start: Start{Timeout: 8 * time.Second},
			Want: Want{Never: true, Status: 1, Within: 8 * time.Second, Says: "document type declaration"},
		},
	}
	for i := range all {
		all[i].Group = "One fault after the other, or all at once"
	}
	return all
}
