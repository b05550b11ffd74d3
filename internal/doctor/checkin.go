package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// firstExecFailure is the lowest exit status that systemd uses for processes that it
// could not start, systemd.exec(5).
const firstExecFailure = 200

// noAnswer returns the step if systemd did not answer.
func noAnswer(s *machine.Snapshot) Step {
	return skip("systemd-no-answer", "systemd: "+s.Units.Err.Error())
}

// timer checks the unit that finishes the work of the hook, and its timer.
func timer(s *machine.Snapshot) Step {
	const timer, service = machine.UnitTimer, machine.UnitCheckIn
	const without = ": what the hook does not finish in time is not done"
	if s.Units.Err != nil {
		return noAnswer(s)
	}
	for _, unit := range []string{timer, service} {
		switch status := s.Units.V[unit]; {
		case status.File == "":
			return warn("unit-missing", unit+" is not installed"+without, reinstall)
		case status.Masked():
			return warn("unit-masked", unit+" is masked"+without, "unmask it, unless that is intended", "sudo systemctl unmask "+unit)
		}
	}
	t, u := s.Units.V[timer], s.Units.V[service]
	result := fmt.Sprintf("result %s, exit status %d", u.Result, u.Exit)
	const log = "sudo journalctl -b -u " + service
	switch {
	case u.Exit >= firstExecFailure:
		return fail("unit-cannot-start", service+" does not start: "+result, "see why", log)
	case u.Active == "failed" || u.Sub == "auto-restart":
		return warn("unit-failed", service+" has failed: "+result, "see why", log)
	case u.Running():
		return ok(service + " is running")
	case t.Active != "active":
		return warn("timer-stopped", timer+" is "+cmp.Or(t.Active, "not loaded"), "start it", "sudo systemctl start "+timer)
	}
	return ok(timer + " is active")
}

func record(s *machine.Snapshot) Step {
	rec, err := s.Records.CheckIn.V, s.Records.CheckIn.Err
	running, state := s.Units.V[machine.UnitCheckIn].Running(), machine.UnitCheckIn+" is not running"
	if s.Units.Err != nil {
		state = s.Units.Err.Error()
	}
	const once = "once the steps before are ok"
	start := []string{checkIn(s)}
	if s.Units.V[machine.UnitCheckIn].Masked() {
		start = []string{"sudo systemctl unmask " + machine.UnitCheckIn, checkIn(s)}
	}
	switch {
	case s.Records.BootErr != nil:
		return warn("boot-id-unknown", "the boot ID cannot be read, so no record counts", "read it", "cat /proc/sys/kernel/random/boot_id")
	case errors.Is(err, fs.ErrNotExist) && running:
		return warn("checking-in", machine.UnitCheckIn+" is checking in", "wait, then run doctor again")
	case errors.Is(err, fs.ErrNotExist):
		return fail("no-check-in", "there was no check-in attempt in this boot", once, start...)
	case err != nil:
		return warn("record-unreadable", strings.TrimPrefix(err.Error(), "boot: "), "remove what is in the way, then check in", start...)
	case rec.State == boot.Ready:
		after := time.Duration(rec.AfterBootMS) * time.Millisecond
		return ok(fmt.Sprintf("checked in %v after boot, with %s, at attempt %d", after, rec.WireServer, rec.Attempts))
	case rec.State == boot.Failed:
		return fail("failure-reported", "ProvisioningFailed was reported, which is final for this boot",
			"restart the VM once the cause is fixed, or check in anyway", "sudo nm-azure-dispatch check-in --force")
	}
	seen := fmt.Sprintf("not checked in, attempts: %d; last: %s", rec.Attempts, rec.LastError)
	_, why, refused := strings.Cut(rec.LastError, "health: ") // the end of both URLs of a report
	switch {
	case refused && reached(s):
		return notAccepted(seen+"; the goal state is answered, the report is not accepted", why)
	case running:
		return warn("trying", seen+"; "+machine.UnitCheckIn+" is retrying", "fix what failed before this; the check-in is retried automatically")
	}
	return fail("nobody-tries", seen+"; "+state, once, start...)
}

// notAccepted returns the step of a WireServer that answers the goal state but not the
// report. why is the error, "403 Forbidden: ..." for an answer.
func notAccepted(seen, why string) Step {
	status := 0
	_, _ = fmt.Sscan(why, &status) // 0 if there was no answer
	switch {
	case status == 403:
		return fail("report-forbidden", seen, metadata)
	case status >= 400:
		return fail("report-refused", seen, busyHost)
	}
	return fail("report-failed", seen, firewall, ruleset)
}

const (
	keepOne       = "keep one; Ready makes Azure detach the disk that waagent reads"
	cloudInit     = "keep one; cloud-init reports Ready itself, and needs its disk until then"
	stopCloudInit = "sudo touch /etc/cloud/cloud-init.disabled"
)

// agentList has the units of other agents that check in, and the remedy for each; none
// if it is harmless.
var agentList = [...]struct{ unit, name, say, run string }{
	{"waagent.service", "waagent", keepOne, "sudo systemctl disable --now waagent.service"},
	{"walinuxagent.service", "waagent", keepOne, "sudo systemctl disable --now walinuxagent.service"},
	{"cloud-init.service", "cloud-init", cloudInit, stopCloudInit},
	{"cloud-init-network.service", "cloud-init", cloudInit, stopCloudInit},
	{"azure-init.service", "azure-init", "keep one; azure-init reports Ready itself", "sudo systemctl disable azure-init.service"},
	{"afterburn-checkin.service", "afterburn-checkin", "", ""},
}

// Agents returns the units of other agents.
func Agents() (units []string) {
	for _, a := range agentList {
		units = append(units, a.unit)
	}
	return units
}

func agents(s *machine.Snapshot) Step {
	if s.Units.Err != nil {
		return noAnswer(s)
	}
	seen := "no other agent checks in"
	var harmful []string
	var say, run string
	for _, a := range agentList {
		switch {
		case !s.Units.V[a.unit].On() || a.name == "cloud-init" && s.Conf.CloudInitOff || slices.Contains(harmful, a.name):
		case a.say == "":
			seen = "also enabled: " + a.name + ", which is harmless"
		default:
			harmful = append(harmful, a.name)
			say, run = cmp.Or(say, a.say), cmp.Or(run, a.run)
		}
	}
	if len(harmful) > 0 {
		return warn("other-agent", "also enabled: "+strings.Join(harmful, ", "), say, run)
	}
	return ok(seen)
}
