package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// firstExecFailure is the least exit status with which systemd itself ends a
// process that it could not start, systemd.exec(5).
const firstExecFailure = 200

func dispatcher(s *machine.Snapshot) result {
	const name, install = machine.UnitDispatcher, "install NetworkManager with its dispatcher"
	u := s.Units.Of(name)
	switch {
	case s.ByNetworkd():
		return skip("networkd", "systemd-networkd has no dispatcher")
	case s.Units.Systemd && s.Units.Status.Err != nil:
		return skip("systemd-no-answer", "systemd: "+s.Units.Status.Err.Error())
	case !s.Units.Systemd && s.Conf.DispatcherBus:
		return ok("the bus starts nm-dispatcher; systemd is not running")
	case !s.Units.Systemd || u.File == "":
		return fail("dispatcher-missing", "nm-dispatcher is not installed", install)
	case u.Masked():
		return fail("dispatcher-masked", name+" is masked: no event reaches the hook", "unmask it"+withEvent,
			"sudo systemctl unmask "+name, "sudo systemctl enable "+name, again(s))
	case u.File == "disabled":
		return fail("dispatcher-disabled", name+" is disabled: no event reaches the hook", "enable it"+withEvent, "sudo systemctl enable "+name, again(s))
	}
	return ok(name + " is " + u.File)
}

// timer checks what starts the unit that finishes the hook's work, or does all
// of it.
func timer(s *machine.Snapshot) result {
	const timer, service = machine.UnitTimer, machine.UnitCheckIn
	t, u := s.Units.Of(timer), s.Units.Of(service)
	const without = ": what the hook does not finish in time is not done"
	for _, unit := range []string{timer, service} {
		switch status := s.Units.Of(unit); {
		case !s.Units.Systemd:
			return skip("no-systemd", "systemd is not running"+without)
		case s.Units.Status.Err != nil:
			return skip("systemd-no-answer", "systemd: "+s.Units.Status.Err.Error())
		case status.File == "":
			return warn("unit-missing", unit+" is not installed"+without, reinstall)
		case status.Masked():
			return warn("unit-masked", unit+" is masked"+without, "unmask it, unless that is intended", "sudo systemctl unmask "+unit)
		}
	}
	log := "sudo journalctl -b -u " + service
	switch {
	case u.Exit >= firstExecFailure:
		return fail("unit-cannot-start", fmt.Sprintf("%s does not start: result %s, exit status %d", service, u.Result, u.Exit), "see why", log)
	case u.Active == "failed":
		return warn("unit-failed", fmt.Sprintf("%s has failed: result %s, exit status %d", service, u.Result, u.Exit), "see why", log)
	case s.ByNetworkd() && !slices.Contains(s.Conf.NetworkdWants, service):
		return warn("wants-link-missing", machine.UnitNetworkd+" does not pull in "+service+": the timer starts it a minute after boot", reinstall)
	case u.Active == "active" || u.Active == "activating":
		return ok(service + " is running")
	case t.Active != "" && t.Active != "active":
		return warn("timer-stopped", timer+" is "+t.Active, "start it", "sudo systemctl start "+timer)
	}
	return ok(timer + " is active")
}

// agents that check in too: their units, and what to do about each.
var agentList = [...]struct{ unit, name, say, run string }{
	{"waagent.service", "waagent", "keep one; Ready makes Azure detach the disk that waagent reads", "sudo systemctl disable --now waagent.service"},
	{"walinuxagent.service", "waagent", "keep one; Ready makes Azure detach the disk that waagent reads", "sudo systemctl disable --now walinuxagent.service"},
	{"cloud-init.service", "cloud-init", "keep one; cloud-init reports Ready itself, and needs its disk until then", "sudo touch /etc/cloud/cloud-init.disabled"},
	{"cloud-init-network.service", "cloud-init", "keep one; cloud-init reports Ready itself, and needs its disk until then", "sudo touch /etc/cloud/cloud-init.disabled"},
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

func agents(s *machine.Snapshot) result {
	var harmless, harmful []string
	say, run := "", ""
	for _, a := range agentList {
		switch {
		case !s.Units.Of(a.unit).On() || a.name == "cloud-init" && s.Conf.CloudInitOff || slices.Contains(harmful, a.name):
		case a.say == "":
			harmless = append(harmless, a.name)
		default:
			harmful = append(harmful, a.name)
			if say == "" {
				say, run = a.say, a.run
			}
		}
	}
	switch {
	case len(harmful) > 0:
		return warn("other-agent", "also enabled: "+strings.Join(harmful, ", "), say, run)
	case len(harmless) > 0:
		return ok("also enabled: " + strings.Join(harmless, ", ") + ", which is harmless")
	}
	return ok("no other agent checks in")
}
