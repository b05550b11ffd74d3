package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// Where the hook is, relative to /; NetworkManager-dispatcher(8).
const (
	hookName   = "90-nm-azure-dispatch"
	vendorHook = "usr/lib/NetworkManager/dispatcher.d/" + hookName
	adminHook  = "etc/NetworkManager/dispatcher.d/" + hookName
	noWaitDir  = "no-wait.d"
	program    = "usr/libexec/nm-azure-dispatch"
	devNull    = "dev/null"
)

// SELinux: what nm-dispatcher runs unconfined, and what it did before Fedora 36.
const (
	enforceFile = "sys/fs/selinux/enforce"
	scriptType  = ":NetworkManager_dispatcher_script_t:"
	initrcType  = ":NetworkManager_initrc_exec_t:"
)

// hook applies the rules by which nm-dispatcher runs or skips a script. One of
// the same name in /etc replaces the package's before they are applied.
func hook(_ context.Context, env *Env) result {
	name := adminHook
	if _, err := fs.Lstat(env.Root, name); err != nil {
		name = vendorHook
	}
	file, err := follow(env.Root, name)
	if errors.Is(err, fs.ErrNotExist) && file == name {
		return fail("/"+vendorHook+" is not there", "install the package: nothing calls the program without it")
	}
	if err != nil {
		return fail(fmt.Sprintf("/%s leads nowhere: %v", name, err), "install the package again, and remove what replaces its files")
	}
	fi, err := fs.Stat(env.Root, file)
	switch {
	case file == devNull || err == nil && fi.Mode().IsRegular() && fi.Size() == 0:
		return fail("/"+name+" masks the hook", "remove it, then repeat the event", "sudo rm /"+name, reapply(env))
	case err != nil:
		return fail(err.Error(), "install the package again")
	case !fi.Mode().IsRegular():
		return fail("/"+file+" is no regular file", "install the package again")
	}
	if r, bad := badMode(env, file, fi); bad {
		return r
	}
	if path.Base(file) != path.Base(program) { // the gate, which calls the program
		fi, err := fs.Stat(env.Root, program)
		if err != nil || fi.Mode().Perm()&0o111 == 0 {
			return fail("/"+program+" is not there, or not executable", "install the package again")
		}
	}
	if r, bad := badLabel(env, file); bad {
		return r
	}
	if file == name || path.Base(path.Dir(file)) != noWaitDir {
		return warn("/"+name+" is no link into no-wait.d: other scripts wait for the hook",
			"have the package's own instead", "sudo rm /"+name)
	}
	return ok("/" + name)
}

// badMode tells why nm-dispatcher would refuse the file.
func badMode(env *Env, file string, fi fs.FileInfo) (result, bool) {
	mode := fi.Mode()
	st, known := fi.Sys().(*syscall.Stat_t)
	switch {
	case known && st.Uid != 0:
		return fail(fmt.Sprintf("/%s belongs to user %d, so nm-dispatcher does not run it", file, st.Uid), "give it to root, then repeat the event", "sudo chown root: /"+file, reapply(env)), true
	case mode.Perm()&0o022 != 0 || mode&fs.ModeSetuid != 0:
		return fail(fmt.Sprintf("/%s has mode %v, so nm-dispatcher does not run it: others can write to it", file, mode), "mend it, then repeat the event", "sudo chmod 0755 /"+file, reapply(env)), true
	case mode.Perm()&0o100 == 0:
		return fail(fmt.Sprintf("/%s has mode %v, so nm-dispatcher does not run it: it is not executable", file, mode), "mend it, then repeat the event", "sudo chmod 0755 /"+file, reapply(env)), true
	}
	return result{}, false
}

// badLabel tells whether SELinux keeps the hook from working: with another type
// it runs in nm-dispatcher's own domain, which may not connect to anything.
func badLabel(env *Env, file string) (result, bool) {
	enforce, err := fs.ReadFile(env.Root, enforceFile)
	if err != nil {
		return result{}, false
	}
	label := env.Label("/" + file)
	if strings.Contains(label, scriptType) || strings.Contains(label, initrcType) {
		return result{}, false
	}
	r := warn(fmt.Sprintf("/%s has the SELinux label %q, want NetworkManager_dispatcher_script_t", file, label), "mend it, then repeat the event", "sudo restorecon -v /"+file, reapply(env))
	if strings.TrimSpace(string(enforce)) == "1" {
		r.verdict = Fail
	}
	return r, true
}

// maxLinks is the kernel's own limit.
const maxLinks = 40

// follow returns what a path leads to, over any number of links, and an error
// if that is not there.
func follow(root fs.FS, name string) (string, error) {
	for range maxLinks {
		target, err := fs.ReadLink(root, name)
		if err != nil {
			_, err := fs.Lstat(root, name)
			return name, err
		}
		if path.IsAbs(target) {
			name = path.Clean(target)[1:]
		} else {
			name = path.Join(path.Dir(name), target)
		}
	}
	return name, syscall.ELOOP
}
