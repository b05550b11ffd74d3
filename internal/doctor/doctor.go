// Package doctor checks a snapshot of the machine, from the platform to a resolved
// name, and reports for each step what was found and how to fix it.
//
// Every check is a pure function of the snapshot. Whether a link's nameservers may
// be changed is decided by the policy of package dispatch.
package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
)

// version counts changes of the JSON output that break its readers.
const version = 1

// Report is the JSON output, which docs/schema/doctor.json describes.
type Report struct {
	Version      int     `json:"version"`
	Steps        []Step  `json:"steps"`
	FirstFailure *string `json:"first_failure"` // the name of a step; nil if none failed
}

// Verdict is the result of a step.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn" // it works, or may work
	Fail    Verdict = "fail"
	Skipped Verdict = "skipped" // not checked, usually because an earlier step failed
)

// Step is the result of one check. It is part of the JSON output.
type Step struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Code    string  `json:"code"` // identifies what was found; stable
	Seen    string  `json:"seen"`
	Remedy  string  `json:"remedy"` // a sentence, often with commands; "" if none

	say string   // the sentence
	run []string // the commands, one after the other
}

func ok(seen string) Step         { return Step{Verdict: OK, Code: "ok", Seen: seen} }
func skip(code, seen string) Step { return Step{Verdict: Skipped, Code: code, Seen: seen} }

func warn(code, seen, say string, run ...string) Step {
	return Step{Verdict: Warn, Code: code, Seen: seen, say: say, run: run}
}

func fail(code, seen, say string, run ...string) Step {
	return Step{Verdict: Fail, Code: code, Seen: seen, say: say, run: run}
}

// check is one step. It follows all steps that it needs.
type check struct {
	name  string
	needs string // a step that must not have failed or been skipped
	nm    bool   // skipped if systemd-networkd configures the interface
	moot  bool   // a failure is a warning once Azure has received Ready and names resolve
	judge func(*machine.Snapshot) Step
}

// checks are in order: a cause before its consequences. The names never change.
var checks = []check{
	{"platform", "", false, false, platform},
	{"networkmanager", "", true, false, networkManager},
	{"dispatcher", "", true, false, dispatcher},
	{"hook", "", true, false, hook},
	{"timer", "", false, true, timer},
	{"device", "networkmanager", false, true, device},
	{"lease", "device", false, true, lease},
	{"option-245", "lease", false, true, option245},
	{"route", "", false, true, route},
	{"tcp-80", "route", false, true, tcp},
	{"goal-state", "tcp-80", false, true, goalState},
	{"record", "", false, false, record},
	{"agents", "", false, false, agents},
	{"resolved", "", false, true, resolved},
	{"resolv-conf", "", false, true, resolvConf},
	{"nm-dns", "networkmanager", true, true, nmDNS},
	{"link-dns", "device", false, true, linkDNS},
	{"nameservers", "", false, true, nameservers},
	{"lookup", "", false, true, lookup},
}

// Judge runs all checks on a snapshot. If the machine is not an Azure VM, all but
// the first are skipped.
func Judge(s *machine.Snapshot) Report {
	report := Report{Version: version}
	resolves := lookup(s).Verdict
	done := s.Ready() && (resolves == OK || resolves == Warn)
	missing := map[string]string{} // steps that others need, and what became of them
	for i, c := range checks {
		var r Step
		switch why := missing[c.needs]; {
		case i > 0 && s.Platform.Err != nil:
			r = skip("platform-unknown", "not checked: the platform is unknown")
		case i > 0 && !s.Platform.Azure:
			r = skip("not-azure", "this machine is not Azure")
		case c.nm && s.ByNetworkd():
			r = skip("networkd", "systemd-networkd manages "+s.Interface)
		case why != "":
			r = skip("not-checked", fmt.Sprintf("not checked: %s %s", c.needs, why))
		default:
			r = c.judge(s)
		}
		switch {
		case r.Verdict == Fail:
			missing[c.name] = "failed"
		case r.Verdict == Skipped && r.Code != "networkd": // there the steps that need it ask systemd-networkd
			missing[c.name] = "was skipped"
		}
		if done && c.moot && r.Verdict == Fail {
			r.Verdict = Warn
		}
		if r.Verdict == Fail && report.FirstFailure == nil {
			report.FirstFailure = &c.name
		}
		r.Name, r.Remedy = c.name, r.say
		if len(r.run) > 0 {
			r.Remedy += ": " + strings.Join(r.run, " && ")
		}
		report.Steps = append(report.Steps, r)
	}
	return report
}

func platform(s *machine.Snapshot) Step {
	const sources = "cat /proc/cmdline /sys/class/dmi/id/chassis_asset_tag"
	switch {
	case s.Platform.Err != nil:
		return fail("platform-unknown", "cannot tell whether this machine is Azure: "+s.Platform.Err.Error(),
			"make the file readable: look for what denies it, such as SELinux", sources)
	case !s.Platform.Azure:
		return fail("not-azure", "this machine is not Azure: "+s.Platform.Why,
			"no action is required on other platforms; an Azure VM is identified by ignition.platform.id=azure "+
				"on the kernel command line or by its chassis asset tag", sources)
	}
	return ok(s.Platform.Why)
}

// Columns of the text output.
const (
	nameColumns    = 15
	verdictColumns = 8
	textColumn     = nameColumns + verdictColumns
)

var verdictColours = map[Verdict]term.Colour{Fail: term.Red, Warn: term.Yellow, OK: term.Green, Skipped: term.Faint}

// Print writes a report for a terminal of 80 columns. Each command has a line of its own,
// never wrapped, to be copied.
func (r Report) Print(w io.Writer, colours bool) error {
	var b strings.Builder
	const margin = "     "
	count := map[Verdict]int{}
	for _, s := range r.Steps {
		count[s.Verdict]++
		verdict := fmt.Sprintf("%-*s", verdictColumns, s.Verdict)
		if colours {
			verdict = verdictColours[s.Verdict].Paint(verdict)
		}
		fmt.Fprintf(&b, "%-*s%s%s\n", nameColumns, s.Name, verdict, term.Indent(s.Seen, textColumn))
		if s.say != "" {
			b.WriteString("  -> " + term.Indent(s.say, len(margin)))
			if len(s.run) > 0 {
				b.WriteString(":\n" + margin + strings.Join(s.run, " &&\n"+margin))
			}
			b.WriteString("\n")
		}
		if s.Name == "platform" && s.Verdict == Fail {
			break // nothing else was checked
		}
	}
	sum := "all is well"
	switch {
	case r.FirstFailure != nil:
		sum = fmt.Sprintf("%d failed, the first one is %s: start there", count[Fail], *r.FirstFailure)
	case count[Warn] > 0:
		sum = fmt.Sprintf("nothing failed; %d to look at", count[Warn])
	}
	_, err := io.WriteString(w, b.String()+"\n"+sum+"\n")
	return err
}
