// Package doctor walks the whole chain from the platform to a resolved name,
// and says of each step how it stands and what to do about it.
//
// It only looks: no check changes anything, sends a report, or starts a service.
// Checks that do not need one another run side by side, each within a limit of
// its own, so that the whole takes less than five seconds whatever hangs.
package doctor

import (
	"context"
	"strings"
)

// Verdict is how a step stands.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn" // it works, or may; look at it
	Fail    Verdict = "fail"
	Skipped Verdict = "skipped" // there is nothing to look at, mostly for an earlier failure
)

// Step is the result of one check. It is part of the JSON output.
type Step struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Seen    string  `json:"seen"`
	Remedy  string  `json:"remedy"` // a sentence, mostly with what to type; "" if nothing is to be done

	say string   // the sentence
	run []string // the commands, one after the other
}

// Report is the JSON output: docs/schema/doctor.json.
type Report struct {
	Version      int     `json:"version"`
	Steps        []Step  `json:"steps"`
	FirstFailure *string `json:"first_failure"` // the name of a step; nil if none failed
}

// version counts changes of the JSON output that break its readers.
const version = 1

// NewReport sums up steps.
func NewReport(steps []Step) Report {
	r := Report{Version: version, Steps: steps}
	for i := range steps {
		if steps[i].Verdict == Fail {
			r.FirstFailure = &steps[i].Name
			break
		}
	}
	return r
}

// check is one step of the walk.
type check struct {
	name  string
	needs []string // steps that must not have failed, or been skipped, for this one to make sense
	after []string // steps that have facts for this one, if they did not fail
	run   func(context.Context, *Env) result
}

// result is what a check found, and the remedy: what to do, and commands for it
// that go one after the other.
type result struct {
	verdict   Verdict
	seen, say string
	run       []string
}

func ok(seen string) result                           { return result{verdict: OK, seen: seen} }
func skip(seen string) result                         { return result{verdict: Skipped, seen: seen} }
func warn(seen, say string, command ...string) result { return result{Warn, seen, say, command} }
func fail(seen, say string, command ...string) result { return result{Fail, seen, say, command} }

// step makes a result part of the output.
func (r result) step(name string) Step {
	remedy := r.say
	if len(r.run) > 0 {
		remedy += ": " + strings.Join(r.run, " && ")
	}
	return Step{name, r.verdict, r.seen, remedy, r.say, r.run}
}

// Names of the steps. They are an interface.
const (
	stepPlatform       = "platform"
	stepNetworkManager = "networkmanager"
	stepDispatcher     = "dispatcher"
	stepHook           = "hook"
	stepTimer          = "timer"
	stepDevice         = "device"
	stepLease          = "lease"
	stepOption245      = "option-245"
	stepRoute          = "route"
	stepTCP            = "tcp-80"
	stepGoalState      = "goal-state"
	stepRecord         = "record"
	stepAgents         = "agents"
	stepResolved       = "resolved"
	stepResolvConf     = "resolv-conf"
	stepNMDNS          = "nm-dns"
	stepLinkDNS        = "link-dns"
	stepNameservers    = "nameservers"
	stepLookup         = "lookup"
)

// checks returns the walk, in its order. A check comes behind all that it needs
// or comes after.
func checks() []check {
	return []check{
		{stepPlatform, nil, nil, platform},
		{stepNetworkManager, nil, nil, networkManager},
		{stepDispatcher, nil, []string{stepNetworkManager}, dispatcher},
		{stepHook, nil, []string{stepNetworkManager}, hook},
		{stepTimer, nil, nil, timer},
		{stepDevice, []string{stepNetworkManager}, nil, device},
		{stepLease, []string{stepDevice}, nil, lease},
		{stepOption245, []string{stepLease}, nil, option245},
		{stepRoute, nil, []string{stepOption245}, route},
		{stepTCP, []string{stepRoute}, nil, tcp},
		{stepGoalState, []string{stepTCP}, nil, goalState},
		{stepRecord, nil, nil, record},
		{stepAgents, nil, nil, agents},
		{stepResolved, nil, []string{stepNetworkManager}, resolved},
		{stepResolvConf, nil, []string{stepResolved}, resolvConf},
		{stepNMDNS, []string{stepNetworkManager}, []string{stepResolved}, nmDNS},
		{stepLinkDNS, []string{stepNetworkManager}, []string{stepResolved, stepLease}, linkDNS},
		{stepNameservers, nil, []string{stepResolved, stepLease}, nameservers},
		{stepLookup, []string{stepResolved}, []string{stepLease}, lookup},
	}
}
