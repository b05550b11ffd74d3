package boottest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	cacheDir     = "/var/cache/nm-azure-dispatch/boottest"
	treePackages = "systemd,systemd-sysv,udev,dbus,network-manager,systemd-resolved,libnss-resolve,iproute2,rpm"
)

var treeOptions = []string{
	"--variant=minbase", "--format=directory",
	"--aptopt=Acquire::Languages \"none\"", "--aptopt=APT::Install-Recommends \"false\"",
	"--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*",
	"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	"--include=" + treePackages,
}

// treeFiles make the tree a machine on Azure as far as we are concerned. NetworkManager leaves systemd-resolved alone,
// so that what resolved knows it knows from us.
var treeFiles = map[string]string{
	"etc/hostname":   "guest\n",
	"etc/hosts":      "127.0.0.1 localhost guest\n",
	"etc/machine-id": "",
	"etc/fstab":      "",
	"etc/NetworkManager/conf.d/boottest.conf": "[main]\ndns=none\nsystemd-resolved=false\nno-auto-default=*\n",
	"etc/NetworkManager/system-connections/nic.nmconnection": "[connection]\nid=nic\ntype=ethernet\n" +
		"uuid=0f0c7c1e-6b1c-4c3e-9a6c-5f9c7f3b1a02\n[ipv4]\nmethod=auto\n[ipv6]\nmethod=link-local\n",
	"etc/systemd/journald.conf.d/boottest.conf": "[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\n",
	"etc/systemd/system/boottest-agent.service": "[Unit]\nDescription=Agent of the boot test\n" +
		"[Service]\nExecStart=" + ourDir + roleAgent + "\n",
}

// treeLinks enable what the test needs and mask what would wait on a console.
var treeLinks = map[string]string{
	"etc/resolv.conf": "../run/systemd/resolve/stub-resolv.conf",
	"etc/systemd/system/multi-user.target.wants/boottest-agent.service": "../boottest-agent.service",
	"etc/systemd/system/systemd-firstboot.service":                      "/dev/null",
	"etc/systemd/system/console-getty.service":                          "/dev/null",
	"etc/systemd/system/getty.target":                                   "/dev/null",
	"etc/systemd/system/timers.target.wants":                            "", // Debian's own
}

// tree gives the root file system, and makes it if there is none by today's recipe.
func tree(ctx context.Context, suite string) (string, error) {
	recipe := sha256.Sum256(fmt.Append(nil, treeOptions, treeFiles, treeLinks))
	path := filepath.Join(cacheDir, fmt.Sprintf("%s-%x", suite, recipe[:5]))
	return path, once(path, func(unfinished string) error {
		if err := mmdebstrap(ctx, append(slices.Clone(treeOptions), suite, unfinished)...); err != nil {
			return err
		}
		return furnish(unfinished)
	})
}

// mmdebstrap runs in namespaces that end with it: it mounts the host's /dev in the tree, which may have to be removed, and
// does not end its children when it is killed.
func mmdebstrap(ctx context.Context, args ...string) error {
	args = append([]string{"--pid", "--fork", "--kill-child", "--mount-proc", "mmdebstrap", "--mode=root", "--quiet"}, args...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mmdebstrap: %w\n%s", err, out)
	}
	return nil
}

func furnish(root string) error {
	for name, target := range treeLinks {
		name = filepath.Join(root, name)
		if err := errors.Join(os.RemoveAll(name), os.MkdirAll(filepath.Dir(name), 0o755)); err != nil {
			return err
		}
		if target == "" {
			continue
		}
		if err := os.Symlink(target, name); err != nil {
			return err
		}
	}
	for name, text := range treeFiles {
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".nmconnection") {
			mode = 0o600
		}
		name = filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode)); err != nil {
			return err
		}
	}
	return errors.Join(
		os.RemoveAll(filepath.Join(root, "etc/NetworkManager/dispatcher.d/01-ifupdown")),
		os.RemoveAll(filepath.Join(root, "var/lib/dbus/machine-id")),
	)
}

// once makes what is to be at the path, unless it is there; others who want the same wait for it.
func once(path string, make func(unfinished string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	unfinished := path + ".new" // of a maker that was killed, if it is there
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := make(unfinished); err != nil {
		return errors.Join(fmt.Errorf("boottest: %s: %w", path, err), os.RemoveAll(unfinished))
	}
	return os.Rename(unfinished, path)
}
