// Package doctor judges a snapshot of the machine, from the platform to a
// resolved name, and says of each step what was found and what to do about it.
//
// Every check is a pure function of the snapshot. None of them knows when a
// link's nameservers are the program's to change: they ask the policy of package
// dispatch.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// Verdict is the result of a step in a word.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn" // it works, or may; worth a look
	Fail    Verdict = "fail"
	Skipped Verdict = "skipped" // there is nothing to check, mostly because of an earlier failure
)

// Step is the result of one check. It is part of the JSON output.
type Step struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Code    string  `json:"code"` // stable: what was found
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
	if i := slices.IndexFunc(steps, func(s Step) bool { return s.Verdict == Fail }); i >= 0 {
		r.FirstFailure = &steps[i].Name
	}
	return r
}

// result is what a check found, and the remedy: what to do, and commands for it
// that go one after the other.
type result struct {
	verdict         Verdict
	code, seen, say string
	run             []string
}

func ok(seen string) result         { return result{OK, "ok", seen, "", nil} }
func skip(code, seen string) result { return result{Skipped, code, seen, "", nil} }
func warn(code, seen, say string, run ...string) result {
	return result{Warn, code, seen, say, run}
}

func fail(code, seen, say string, run ...string) result {
	return result{Fail, code, seen, say, run}
}

// step makes a result part of the output.
func (r result) step(name string) Step {
	remedy := r.say
	if len(r.run) > 0 {
		remedy += ": " + strings.Join(r.run, " && ")
	}
	return Step{name, r.verdict, r.code, r.seen, remedy, r.say, r.run}
}

// check is one step. A check comes behind all that it needs.
type check struct {
	name  string
	needs string // a step that must not have failed, or been skipped, for this one to make sense
	// moot says that what the check is about has served its purpose once Azure has
	// received Ready and names resolve: then it is no failure.
	moot  bool
	judge func(*machine.Snapshot) result
}

// checks returns the steps in their order: a cause before its consequences.
// Their names are an interface.
func checks() []check {
	return []check{
		{stepPlatform, "", false, platform},
		{"networkmanager", "", false, networkManager},
		{"dispatcher", "", false, dispatcher},
		{"hook", "", false, hook},
		{"timer", "", true, timer},
		{"device", "networkmanager", true, device},
		{"lease", "device", true, lease},
		{"option-245", "lease", true, option245},
		{"route", "", true, route},
		{"tcp-80", "route", true, tcp},
		{"goal-state", "tcp-80", true, goalState},
		{"record", "", false, record},
		{"agents", "", false, agents},
		{"resolved", "", true, resolved},
		{"resolv-conf", "", true, resolvConf},
		{"nm-dns", "networkmanager", true, nmDNS},
		{"link-dns", "device", true, linkDNS},
		{"nameservers", "", true, nameservers},
		{"lookup", "", true, lookup},
	}
}

const stepPlatform = "platform"

// Judge makes all checks of a snapshot. On a machine that is not Azure all but
// the first are skipped.
func Judge(s *machine.Snapshot) []Step {
	verdicts := map[string]Verdict{}
	var steps []Step
	resolves := lookup(s).verdict
	done := s.Ready() && (resolves == OK || resolves == Warn)
	for _, c := range checks() {
		var r result
		switch before := verdicts[c.needs]; {
		case c.name != stepPlatform && verdicts[stepPlatform] != OK:
			r = skip("not-azure", "this machine is not Azure")
			if s.Platform.Err != nil {
				r = skip("platform-unknown", "not checked: the platform is unknown")
			}
		case before == Fail || before == Skipped:
			r = skip("not-checked", fmt.Sprintf("not checked: %s %s", c.needs, map[Verdict]string{Fail: "failed", Skipped: "was skipped"}[before]))
		default:
			r = c.judge(s)
		}
		if verdicts[c.name] = r.verdict; r.code == "networkd" {
			verdicts[c.name] = OK // another of the steps has looked at it
		}
		if done && c.moot && r.verdict == Fail {
			r.verdict = Warn
		}
		steps = append(steps, r.step(c.name))
	}
	return steps
}
