package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// firstExecFailure is the lowest exit status that systemd uses for processes that it
// could not start, systemd.exec(5).
const firstExecFailure = 200

// noAnswer returns the step if systemd did not answer.
func noAnswer(err error) Step { return skip("systemd-no-answer", "systemd: "+err.Error()) }

func dispatcher(s *machine.Snapshot) Step {
	const name = machine.UnitDispatcher
	u := s.Units.V[name]
	enable := []string{"sudo systemctl enable " + name, again(s)}
	switch {
	case s.Systemd && s.Units.Err != nil:
		return noAnswer(s.Units.Err)
	case !s.Systemd && s.Conf.DispatcherBus:
		return ok("the bus starts nm-dispatcher; systemd is not running")
	case !s.Systemd || u.File == "":
		return fail("dispatcher-missing", "nm-dispatcher is not installed", "install NetworkManager with its dispatcher")
	case u.Masked():
		return fail("dispatcher-masked", name+" is masked: no event reaches the hook", "unmask it"+withEvent, append([]string{"sudo systemctl unmask " + name}, enable...)...)
	case u.File == "disabled":
		return fail("dispatcher-disabled", name+" is disabled: no event reaches the hook", "enable it"+withEvent, enable...)
	}
	return ok(name + " is " + u.File)
}

// timer checks the unit that finishes the work of the hook, and its timer.
func timer(s *machine.Snapshot) Step {
	const timer, service = machine.UnitTimer, machine.UnitCheckIn
	const without = ": what the hook does not finish in time is not done"
	switch {
	case !s.Systemd:
		return skip("no-systemd", "systemd is not running"+without)
	case s.Units.Err != nil:
		return noAnswer(s.Units.Err)
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
	case s.ByNetworkd() && !s.Conf.Wanted:
		return warn("wants-link-missing", machine.UnitNetworkd+" does not pull in "+service+": the timer starts it a minute after boot", reinstall)
	case u.Active == "active" || u.Active == "activating":
		return ok(service + " is running")
	case t.Active != "" && t.Active != "active":
		return warn("timer-stopped", timer+" is "+t.Active, "start it", "sudo systemctl start "+timer)
	}
	return ok(timer + " is active")
}

const (
	keepOne       = "keep one; Ready makes Azure detach the disk that waagent reads"
	cloudInit     = "keep one; cloud-init reports Ready itself, and needs its disk until then"
	stopCloudInit = "sudo touch /etc/cloud/cloud-init.disabled"
)

// agents are other agents that check in: their units, and the remedy for each; none
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
func Agents() []string {
	var names []string
	for _, a := range agentList {
		names = append(names, a.unit)
	}
	return names
}

func agents(s *machine.Snapshot) Step {
	if s.Units.Err != nil {
		return noAnswer(s.Units.Err)
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
