package doctor

import (
	"context"
	"io/fs"
	"strings"
)

// Units that the walk asks about.
const (
	dispatcherUnit = "NetworkManager-dispatcher.service"
	timerUnit      = "nm-azure-checkin.timer"
	checkInUnit    = "nm-azure-checkin.service"
	resolvedUnit   = "systemd-resolved.service"
)

// dispatcherBusFile lets a bus start nm-dispatcher where there is no systemd.
const dispatcherBusFile = "usr/share/dbus-1/system-services/org.freedesktop.nm_dispatcher.service"

func dispatcher(_ context.Context, env *Env) result {
	if !env.systemd() {
		if _, err := fs.Stat(env.Root, dispatcherBusFile); err != nil {
			return fail("nm-dispatcher is not installed", "install NetworkManager with its dispatcher")
		}
		return ok("the bus starts nm-dispatcher; systemd is not running")
	}
	switch u := env.unit(dispatcherUnit); u.File {
	case "":
		return fail(dispatcherUnit+" is not installed", "install NetworkManager with its dispatcher")
	case "masked", "masked-runtime":
		return fail(dispatcherUnit+" is masked: no event reaches the hook",
			"unmask it, then repeat the event", "sudo systemctl unmask "+dispatcherUnit, "sudo systemctl enable "+dispatcherUnit, reapply(env))
	case "disabled":
		return fail(dispatcherUnit+" is disabled: no event reaches the hook",
			"enable it, then repeat the event", "sudo systemctl enable "+dispatcherUnit, reapply(env))
	default:
		return ok(dispatcherUnit + " is " + u.File)
	}
}

func timer(_ context.Context, env *Env) result {
	if !env.systemd() {
		return skip("systemd is not running, so nothing goes on where the hook has to stop after 5 s")
	}
	t, s := env.unit(timerUnit), env.unit(checkInUnit)
	switch {
	case t.File == "" || s.File == "":
		return warn(missing(t.File, timerUnit, s.File, checkInUnit), "install the package again: without them the hook's 5 s are all that a boot has")
	case masked(t.File) || masked(s.File):
		name := timerUnit
		if masked(s.File) {
			name = checkInUnit
		}
		return warn(name+" is masked: the hook's 5 s are all that a boot has", "unmask it, unless that is meant so", "sudo systemctl unmask "+name)
	case s.Active == "failed":
		return warn(checkInUnit+" has failed", "look why", "sudo journalctl -b -u "+checkInUnit)
	case s.Active == "active" || s.Active == "activating":
		return ok(checkInUnit + " is at work")
	case t.Active != "" && t.Active != "active":
		return warn(timerUnit+" is "+t.Active, "start it", "sudo systemctl start "+timerUnit)
	}
	return ok(timerUnit + " is in place")
}

func masked(state string) bool { return strings.HasPrefix(state, "masked") }

func missing(timer, timerName, service, serviceName string) string {
	switch {
	case timer == "" && service == "":
		return timerName + " and " + serviceName + " are not installed"
	case timer == "":
		return timerName + " is not installed"
	}
	return serviceName + " is not installed"
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

const cloudInitDisabled = "etc/cloud/cloud-init.disabled"

func agentUnits() []string {
	names := make([]string, len(agentList))
	for i, a := range agentList {
		names[i] = a.unit
	}
	return names
}

func agents(_ context.Context, env *Env) result {
	var harmless, harmful []string
	say, run := "", ""
	for _, a := range agentList {
		if !env.unit(a.unit).On() {
			continue
		}
		if _, err := fs.Stat(env.Root, cloudInitDisabled); err == nil && a.name == "cloud-init" {
			continue
		}
		if a.say == "" {
			harmless = append(harmless, a.name)
			continue
		}
		if say == "" {
			say, run = a.say, a.run
		}
		if len(harmful) == 0 || harmful[len(harmful)-1] != a.name {
			harmful = append(harmful, a.name)
		}
	}
	switch {
	case len(harmful) > 0:
		return warn(too(harmful), say, run)
	case len(harmless) > 0:
		return ok(too(harmless) + ", which is harmless")
	}
	return ok("no other agent checks in")
}

func too(names []string) string {
	if len(names) == 1 {
		return names[0] + " checks in too"
	}
	return strings.Join(names, " and ") + " check in too"
}
