package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

const (
	noWaitDir  = "no-wait.d"
	devNull    = "dev/null"
	reinstall  = "reinstall the package"
	withEvent  = ", then repeat the event"
	gate       = "/usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch"
	scriptType = "NetworkManager_dispatcher_script_t"
)

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
	case h.File == devNull || h.Err == nil && h.Mode.IsRegular() && h.Empty:
		return fail("hook-masked", name+" masks the hook", say, run...)
	case h.Err != nil:
		return fail("hook-dangling", fmt.Sprintf("%s leads to %s: %v", name, file, h.Err), reinstall+", and remove what replaces its files")
	case !h.Mode.IsRegular():
		return fail("hook-no-file", file+" is not a regular file", reinstall+", and remove what replaces its files")
	case h.Owner != 0:
		return fail("hook-owner", fmt.Sprintf("%s belongs to user %d, so nm-dispatcher does not run it", file, h.Owner), "give it to root"+withEvent, "sudo chown root: "+file, again(s))
	case h.Mode.Perm()&0o022 != 0 || h.Mode&fs.ModeSetuid != 0:
		return fail("hook-writable", mode+"others can write to it", "fix it"+withEvent, chmod...)
	case h.Mode.Perm()&0o100 == 0:
		return fail("hook-not-executable", mode+"it is not executable", "fix it"+withEvent, chmod...)
	case !h.Calls && h.Name == machine.AdminHook:
		return fail("hook-replaced", name+" replaces the package's hook and does not call the program", say, run...)
	case !h.Calls:
		return fail("hook-replaced", file+" is not the package's hook and does not call the program", say, run...)
	case !h.Program && path.Base(h.File) != path.Base(machine.Program):
		return fail("hook-program-missing", "/"+machine.Program+" does not exist, or is not executable", reinstall)
	}
	if r, bad := labels(s); bad {
		return r
	}
	if h.File == h.Name || path.Base(path.Dir(h.File)) != noWaitDir {
		return warn("hook-waits", name+" is not a link into no-wait.d: other scripts wait for the hook", say, run...)
	}
	return ok(name)
}

// labels checks that SELinux lets nm-dispatcher run the hook in the domain for
// custom scripts. This requires a certain type of the file, and of the link to it, or
// nm-dispatcher may not read it. nm-dispatcher's own domain may neither connect to
// the WireServer nor read /proc/cmdline.
func labels(s *machine.Snapshot) (Step, bool) {
	h, bad := s.Hook, fail
	if h.Enforce != "1" {
		bad = warn
	}
	name, file := "/"+h.Name, "/"+h.File
	wrong := func(label string) bool { return !strings.Contains(label, ":"+scriptType+":") }
	relabel := func(code, file, label string) (Step, bool) {
		return bad(code, fmt.Sprintf("%s has the SELinux label %q, want %s", file, label, scriptType), "fix it"+withEvent, "sudo restorecon -v "+file, again(s)), true
	}
	switch {
	case h.Enforce == "":
		return Step{}, false
	case !strings.Contains(h.File, "NetworkManager/dispatcher.d/") && wrong(h.TargetLabel):
		return bad("hook-past-gate", fmt.Sprintf("%s leads to %s, which SELinux does not let nm-dispatcher run as a hook (label %q)", name, file, h.TargetLabel),
			"link it to the package's script"+withEvent, "sudo ln -sfT "+gate+" "+name, "sudo restorecon -v "+name, again(s)), true
	case wrong(h.EntryLabel):
		return relabel("hook-link-label", name, h.EntryLabel)
	case wrong(h.TargetLabel):
		return relabel("hook-label", file, h.TargetLabel)
	}
	return Step{}, false
}
