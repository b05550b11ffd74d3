package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Suites are the Debian releases that the lab knows, the oldest first: NetworkManager 1.42.4 with systemd 252, 1.52.1
// with 257, and what testing has today (1.58.1 with 262).
var Suites = []string{"bookworm", "trixie", "testing"}

// Newest is the last of Suites.
const Newest = "testing"

const (
	treeTool     = "mmdebstrap"
	treeCache    = "/var/cache/nm-azure-dispatch/lab"
	treePackages = "systemd,systemd-sysv,udev,dbus,network-manager,systemd-resolved,libnss-resolve," +
		"iproute2,procps,strace,curl,nftables,mount,rpm"
)

// dhcpClients are the packages of NetworkManager's other DHCP clients, where a release has them.
var dhcpClients = map[string]string{
	"bookworm": ",isc-dhcp-client", "trixie": ",isc-dhcp-client,dhcpcd-base", "testing": ",dhcpcd-base",
}

// treeOptions leave out what no test reads, and the syncing that a tree which can be made again does not need. The
// Release file of testing can be past its date on a mirror.
var treeOptions = []string{
	"--variant=essential", "--format=directory",
	"--aptopt=Acquire::Languages \"none\"", "--aptopt=APT::Install-Recommends \"false\"",
	"--aptopt=Acquire::Check-Valid-Until \"false\"",
	"--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*",
	"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	// Debian's own script fails at each event where ifupdown is not installed.
	`--customize-hook=rm -f "$1/etc/NetworkManager/dispatcher.d/01-ifupdown"`,
}

// Tree gives the root file system of a Debian release with the daemons in it, and with more packages if any are named. It
// makes one if there is none for today's list of packages, which takes half a minute on an idle machine; concurrent
// callers wait for the first one.
func Tree(ctx context.Context, suite string, packages ...string) (string, error) {
	if !slices.Contains(Suites, suite) {
		return "", fmt.Errorf("lab: no suite %q: want one of %s", suite, strings.Join(Suites, ", "))
	}
	if err := Available(); err != nil {
		return "", err
	}
	options := append(slices.Clone(treeOptions), "--include="+strings.Join(append([]string{treePackages + dhcpClients[suite]}, packages...), ","))
	recipe := sha256.Sum256([]byte(strings.Join(options, "\n")))
	return cached(fmt.Sprintf("%s-%x", suite, recipe[:5]), func(dir string) error {
		return debootstrap(ctx, suite, dir, options...)
	})
}

// cached gives a directory of that name that is kept between runs, and has it made if it is not there. Concurrent callers
// wait for the first one.
func cached(name string, make func(dir string) error) (string, error) {
	path := filepath.Join(treeCache, name)
	if exists(path) {
		return path, nil
	}
	if err := os.MkdirAll(treeCache, 0o755); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lab: lock %s: %w", lock.Name(), err)
	}
	if exists(path) {
		return path, nil
	}
	// Under the lock this can only be left over from an interrupted run.
	unfinished := path + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	if err := make(unfinished); err != nil {
		return "", errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	return path, nil
}

// debootstrap makes a Debian tree with mmdebstrap, which gets the options given.
func debootstrap(ctx context.Context, suite, dir string, options ...string) error {
	// It mounts the host's /dev and /proc in the tree: in namespaces of its own, which end with it and all its children,
	// since the tree may have to be removed.
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", treeTool, "--mode=root", "--quiet"}, options...)
	args = append(args, suite, dir)
	if mirror := debianMirror(ctx); mirror != "" {
		args = append(args, mirror)
	}
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("lab: mmdebstrap %s: %w\n%s", suite, err, out[max(0, len(out)-2000):])
	}
	return nil
}

// debianMirror is where this machine's own apt gets Debian from; empty leaves the choice to mmdebstrap.
func debianMirror(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)",
		"Created-By: Packages", "Origin: Debian", "Label: Debian", "Component: main").Output()
	if err != nil {
		return ""
	}
	mirror, _, _ := strings.Cut(string(out), "\n")
	return mirror
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
