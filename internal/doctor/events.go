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
			"start it", "sudo systemctl enable --now "+machine.UnitNetworkManager)
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
	replaced  = reinstall + ", and remove what replaces its files"
)

func dispatcher(s *machine.Snapshot) Step {
	const name = machine.UnitDispatcher
	u := s.Units.V[name]
	enable := []string{"sudo systemctl enable " + name, again(s)}
	switch {
	case s.Units.Err != nil:
		return noAnswer(s)
	case u.File == "":
		return fail("dispatcher-missing", "nm-dispatcher is not installed", "install NetworkManager with its dispatcher")
	case u.Masked():
		unmask := "sudo systemctl unmask " + name
		return fail("dispatcher-masked", name+" is masked: no event reaches the hook", "unmask it"+withEvent, append([]string{unmask}, enable...)...)
	case u.File == "disabled":
		return fail("dispatcher-disabled", name+" is disabled: no event reaches the hook", "enable it"+withEvent, enable...)
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
	mode := fmt.Sprintf("%s has mode %v, so nm-dispatcher does not run it: ", file, h.Mode)
	chmod := []string{"sudo chmod 0755 " + file, again(s)}
	switch {
	case errors.Is(h.Err, fs.ErrNotExist) && h.File == h.Name:
		return fail("hook-missing", name+" does not exist", "install the package: nothing calls the program without it")
	case h.File == "dev/null" || h.Err == nil && h.Mode.IsRegular() && h.Empty:
		return fail("hook-masked", name+" masks the hook", say, run...)
	case h.Err != nil:
		return fail("hook-dangling", fmt.Sprintf("%s leads to %s: %v", name, file, h.Err), replaced)
	case !h.Mode.IsRegular():
		return fail("hook-no-file", file+" is not a regular file", replaced)
	case h.Owner != 0:
		return fail("hook-owner", fmt.Sprintf("%s belongs to user %d, so nm-dispatcher does not run it", file, h.Owner),
			"give it to root"+withEvent, "sudo chown root: "+file, again(s))
	case h.Mode.Perm()&0o022 != 0 || h.Mode&fs.ModeSetuid != 0:
		return fail("hook-writable", mode+"others can write to it, or it is set-UID", "fix it"+withEvent, chmod...)
	case h.Mode.Perm()&0o100 == 0:
		return fail("hook-not-executable", mode+"it is not executable", "fix it"+withEvent, chmod...)
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
	if h.Enforce != "1" {
		bad = warn
	}
	name, file := "/"+h.Name, "/"+h.File
	wrong := func(label string) bool { return !strings.Contains(label, ":"+scriptType+":") }
	relabel := func(code, file, label string) Step {
		return bad(code, fmt.Sprintf("%s has the SELinux label %q, want %s", file, label, scriptType),
			"fix it"+withEvent, "sudo restorecon -v "+file, again(s))
	}
	switch {
	case h.Enforce == "":
		return Step{}
	case !strings.Contains(h.File, "NetworkManager/dispatcher.d/") && wrong(h.TargetLabel):
		seen := fmt.Sprintf("%s leads to %s, which SELinux does not let nm-dispatcher run as a hook (label %q)", name, file, h.TargetLabel)
		return bad("hook-past-gate", seen, "link it to the package's script"+withEvent,
			"sudo ln -sfT "+gate+" "+name, "sudo restorecon -v "+name, again(s))
	case wrong(h.EntryLabel):
		return relabel("hook-link-label", name, h.EntryLabel)
	case wrong(h.TargetLabel):
		return relabel("hook-label", file, h.TargetLabel)
	}
	return Step{}
}
