package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// NetworkManager's versions, as number gives them.
const (
	silentFrom  = 1_036_000 // dhcp4-change for the first lease only, commit e1648d0665
	silentTo    = 1_042_004 // until commit cab80c5129
	reapplyFrom = 1_042_000 // the event reapply
)

func networkManager(s *machine.Snapshot) Step {
	version := s.NM.V.Version
	switch {
	case errors.Is(s.NM.Err, nm.ErrNotRunning):
		return fail("networkmanager-stopped", "NetworkManager is not running",
			"start it", enable(s, machine.UnitNetworkManager)...)
	case s.NM.Err != nil:
		return fail("networkmanager-no-answer", s.NM.Err.Error(),
			"restart it; if that does not help, restart the machine", "sudo systemctl restart "+machine.UnitNetworkManager)
	case number(version) >= silentFrom && number(version) <= silentTo:
		return warn("networkmanager-silent-renewals", version+" is running; versions 1.36.0 to 1.42.4 send no event when a lease is renewed, "+
			"so changed DNS servers of the virtual network take effect on the next activation only", "after such a change", again(s))
	}
	return ok(version + " is running")
}

// number makes a version comparable: 1.42.4-1.el9 is 1042004, and 0 is none.
func number(version string) int {
	var major, minor, micro int
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &micro) // what is missing is 0
	return major*1_000_000 + minor*1000 + micro
}

const (
	withEvent = ", then repeat the event"
	reinstall = "reinstall the package"
)

func dispatcher(s *machine.Snapshot) Step {
	const name = machine.UnitDispatcher
	u := s.Units.V[name]
	switch {
	case s.Units.Err != nil:
		return noAnswer(s)
	case u.File == "":
		return fail("dispatcher-missing", "nm-dispatcher is not installed", "install NetworkManager with its dispatcher")
	case u.Masked() || u.File == "disabled":
		return fail("dispatcher-off", name+" is "+u.File+": no event reaches the hook", "enable it"+withEvent, enable(s, name, again(s))...)
	}
	return ok(name + " is " + u.File)
}

// hook checks the hook by the rules of nm-dispatcher for running a script.
func hook(s *machine.Snapshot) Step {
	h := s.Hook
	name, file := "/"+h.Name, "/"+h.File
	say, run := reinstall, []string(nil)
	if h.Name == machine.AdminHook { // without it the package's own counts
		say, run = "remove it"+withEvent, []string{"sudo rm " + name, again(s)}
	}
	switch {
	case errors.Is(h.Err, fs.ErrNotExist) && h.File == h.Name:
		return fail("hook-missing", name+" does not exist", "install the package: nothing calls the program without it")
	case h.File == "dev/null" || h.Err == nil && h.Empty:
		return fail("hook-masked", name+" masks the hook", say, run...)
	case h.Err != nil:
		return fail("hook-unreadable", fmt.Sprintf("%s leads to %s: %v", name, file, h.Err), reinstall+", and remove what replaces its files")
	case h.Owner != 0 || h.Mode.Perm()&0o122 != 0o100 || h.Mode&fs.ModeSetuid != 0:
		return fail("hook-mode", fmt.Sprintf("%s belongs to user %d and has mode %v: nm-dispatcher does not run it", file, h.Owner, h.Mode),
			"give it to root, who alone may write and everybody execute it"+withEvent, "sudo chown root: "+shell(file), "sudo chmod 0755 "+shell(file), again(s))
	case !h.Calls:
		return fail("hook-replaced", file+" is not the package's hook and does not call the program", say, run...)
	case !h.Program && path.Base(h.File) != path.Base(machine.Program):
		return fail("hook-program-missing", "/"+machine.Program+" does not exist, or is not executable", reinstall)
	}
	if r := labels(s); r.Verdict != "" {
		return r
	}
	if h.File == h.Name || path.Base(path.Dir(h.File)) != "no-wait.d" {
		return warn("hook-waits", name+" is not a link into no-wait.d: other scripts wait for the hook", say, run...)
	}
	return ok(name)
}

// labels checks that SELinux lets nm-dispatcher run the hook in the domain for
// custom scripts. This requires a certain type of the file, and of the link to it, or
// nm-dispatcher may not read it. nm-dispatcher's own domain may neither connect to
// the WireServer nor read /proc/cmdline. The result is zero if they are right.
func labels(s *machine.Snapshot) Step {
	const (
		gate       = "/usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch"
		scriptType = "NetworkManager_dispatcher_script_t"
	)
	h, bad := s.Hook, fail
	if h.Enforce == "" {
		return Step{}
	}
	if h.Enforce != "1" {
		bad = warn
	}
	name, file := "/"+h.Name, "/"+h.File
	wrong := func(label string) bool { return !strings.Contains(label, ":"+scriptType+":") }
	if !strings.Contains(h.File, "NetworkManager/dispatcher.d/") && wrong(h.TargetLabel) {
		seen := fmt.Sprintf("%s leads to %s, which SELinux does not let nm-dispatcher run as a hook (label %q)", name, file, h.TargetLabel)
		return bad("hook-past-gate", seen, "link it to the package's script"+withEvent,
			"sudo ln -sfT "+gate+" "+name, "sudo restorecon -v "+name, again(s))
	}
	for _, f := range [][2]string{{name, h.EntryLabel}, {file, h.TargetLabel}} {
		if wrong(f[1]) {
			return bad("hook-label", fmt.Sprintf("%s has the SELinux label %q, want %s", f[0], f[1], scriptType),
				"fix it"+withEvent, "sudo restorecon -v "+shell(f[0]), again(s))
		}
	}
	return Step{}
}
