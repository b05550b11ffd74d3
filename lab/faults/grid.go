package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// The requests of a check-in.
const (
	atGoalState = "goal state"
	atHealth    = "health"
)

// fault is a wrong answer to either request of the XML endpoint. Its delay is the design's: two quick retries, then
// the JSON endpoint.
type fault struct {
	name string
	step wiretest.Step
	// only says at which request it is a fault; "": at both.
	only string
	cost [3]time.Duration // once, three times, for ever
	// taken says that the server takes the Ready, and its answer is what is wrong: then it gets it again.
	taken bool
	// peers' best for three times; for hangs, for once.
	goalState, health Peer
}

var (
	// fast is what a fault costs that shows at once: pauses of 250 ms, 500 ms and 1 s, and then the JSON endpoint.
	fast = [3]time.Duration{250 * time.Millisecond, 1750 * time.Millisecond, 1750 * time.Millisecond}
	// silent is what a request costs that is not answered: 3 s for the first, and then what the patience grows to.
	silent = [3]time.Duration{3 * time.Second, 12750 * time.Millisecond, 12750 * time.Millisecond}
)

func status(code int) wiretest.Step {
	return wiretest.Step{Status: code, Body: new(fmt.Sprintf("<html><body>%d</body></html>", code))}
}

const megabyte = 1 << 20

// page is what a proxy answers in the WireServer's place.
var page = wiretest.Step{
	Status: 200, Body: new(`<!DOCTYPE html><html><head><title>Sign in</title></head><body>proxy</body></html>`), Foreign: true,
}

// grid are the faults of single answers.
func grid() []fault {
	return []fault{
		{name: "400 Bad Request", step: status(400), cost: fast, goalState: curl3, health: curl3},
		{name: "403 Forbidden", step: status(403), cost: fast},
		{name: "404 Not Found", step: status(404), cost: fast, goalState: curl3, health: curl3},
		{name: "410 Gone", step: status(410), cost: fast, goalState: curl3, health: curl3},
		{name: "429 Too Many Requests", step: status(429), cost: fast, health: curl3},
		{name: "500 Internal Server Error", step: status(500), cost: fast, goalState: curl3, health: curl3},
		{name: "503 Service Unavailable", step: status(503), cost: fast, goalState: curl3, health: curl3},
		{name: "302 to itself", step: redirect(302), cost: fast},
		{name: "307 to itself", step: redirect(307), cost: fast},
		{name: "101 Switching Protocols", step: wiretest.Step{Status: 101}, cost: fast},
		{name: "connection reset", step: wiretest.Step{Reset: true}, cost: fast, goalState: curl3, health: curl3},
		{name: "connection closed", step: wiretest.Step{Close: true}, cost: fast},
		{name: "no answer", step: wiretest.Step{Hang: true}, cost: silent, goalState: waagentHang, health: curlHang},
		{name: "answer after 15 s", step: wiretest.Step{Delay: wiretest.Duration(15 * time.Second)}, cost: silent, taken: true},
		{name: "not HTTP", step: wiretest.Step{Raw: new("SSH-2.0-OpenSSH_9.2\r\n")}, cost: fast},
		{name: "header of 1 MB", step: wiretest.Step{HeaderBytes: megabyte}, cost: fast, taken: true},
		{name: "header cut short", step: wiretest.Step{Raw: new("HTTP/1.1 200 OK\r\nContent-Le")}, cost: fast},

		{name: "204 No Content", step: wiretest.Step{Status: 204, Body: new("")}, cost: fast, only: atGoalState},
		{name: "body empty", step: wiretest.Step{Body: new("")}, cost: fast, only: atGoalState},
		{name: "body cut short", step: wiretest.Step{Withhold: 200}, cost: fast, only: atGoalState},
		{name: "body cut short, no length", step: wiretest.Step{Withhold: 200, HTTP10: true}, cost: fast, only: atGoalState},
		{name: "body of a byte a second", step: wiretest.Step{Trickle: wiretest.Duration(time.Second)}, cost: silent, only: atGoalState},
		{name: "body is garbage", step: wiretest.Step{Body: new("\x00\x01\xfe\xff garbage")}, cost: fast, only: atGoalState},
		{name: "body is a proxy's page", step: page, cost: fast},
		{name: "no role instance", step: wiretest.Step{Body: new("<GoalState><Incarnation>1</Incarnation><Container><ContainerId>c</ContainerId></Container></GoalState>")}, cost: fast, only: atGoalState},
		{name: "body of 50,000 attributes", step: wiretest.Step{Body: new("<GoalState " + strings.Repeat(`a="" `, 50_000) + "/>")}, cost: fast, only: atGoalState},
		{name: "body nested 80,000 deep", step: wiretest.Step{Body: new("<GoalState>" + strings.Repeat("<a>", 80_000))}, cost: fast, only: atGoalState},
		{name: "body of 20,000 containers", step: wiretest.Step{Body: new("<GoalState>" + strings.Repeat("<Container/>", 20_000) + "</GoalState>")}, cost: fast, only: atGoalState},
		{name: "identifier of 900 KB", step: wiretest.Step{Body: new("<GoalState><Incarnation>" + strings.Repeat("1", 900<<10) + "</Incarnation></GoalState>")}, cost: fast, only: atGoalState},
		{name: "body of 100 MB", step: wiretest.Step{BodyBytes: 100 * megabyte, Chunked: true, Body: new("<GoalState>")}, cost: fast, only: atGoalState},
	}
}

// redirect leads back to the same server, to an address that answers a GET with 200: a client that follows turns its POST
// into that GET, and takes a success for its own.
func redirect(code int) wiretest.Step {
	return wiretest.Step{Status: code, Header: map[string]string{"Location": "/?comp=versions"}, Body: new("")}
}

// cases are the grid's: each fault at each request, once, three times, and for ever while the other way works.
func (f fault) cases() []Case {
	var all []Case
	for _, at := range []string{atGoalState, atHealth} {
		if f.only != "" && f.only != at {
			continue
		}
		for i, times := range []int{1, 3, -1} {
			c := Case{
				Name: fmt.Sprintf("%s: %s %s", at, f.name, timesText(times)),
				Cell: Cell{Fault: f.name, At: at, Times: times},
				Want: Want{Within: f.cost[i]},
			}
			if f.taken && at == atHealth {
				c.Want.Readys = -1
			}
			if f.cost == fast {
				c.Want.Says = journal.AttemptFailed.Message
			}
			step := f.step
			step.Times = times
			peer := f.goalState
			if at == atGoalState {
				c.Script.GoalState = []wiretest.Step{step}
			} else {
				c.Script.Health, peer = []wiretest.Step{step}, f.health
			}
			if onlyOnce := f.cost == silent; onlyOnce == (times == 1) && times > 0 {
				c.Peer = peer
			}
			all = append(all, c)
		}
	}
	return all
}

func timesText(n int) string {
	switch n {
	case -1:
		return "for ever"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
