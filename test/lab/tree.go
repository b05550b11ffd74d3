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

// Suites are the Debian releases that the lab knows: NetworkManager 1.42.4 with systemd 252, and 1.52.1 with 257.
var Suites = []string{"bookworm", "trixie"}

const (
	treeTool     = "mmdebstrap"
	treeCache    = "/var/cache/nm-azure-dispatch/lab"
	treePackages = "systemd,systemd-sysv,udev,dbus,network-manager,systemd-resolved,libnss-resolve," +
		"iproute2,procps,strace,curl,nftables"
)

var errNoTreeTool = errors.New("lab: mmdebstrap is missing, which makes the Debian trees: apt-get install mmdebstrap")

// treeOptions leave out what no test reads, and the syncing that a tree which can be made again does not need.
var treeOptions = []string{
	"--mode=root", "--variant=essential", "--format=directory", "--quiet",
	"--aptopt=Acquire::Languages \"none\"", "--aptopt=APT::Install-Recommends \"false\"",
	"--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*",
	"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	"--include=" + treePackages,
	// Debian's own script fails at each event where ifupdown is not installed.
	`--customize-hook=rm -f "$1/etc/NetworkManager/dispatcher.d/01-ifupdown"`,
}

// Tree gives the root file system of a Debian release with the daemons in it. It makes one if there is none for
// today's list of packages, which takes half a minute on an idle machine; concurrent callers wait for the first one.
func Tree(ctx context.Context, suite string) (string, error) {
	if !slices.Contains(Suites, suite) {
		return "", fmt.Errorf("lab: no suite %q: want one of %s", suite, strings.Join(Suites, ", "))
	}
	path := treePath(suite)
	if exists(path) {
		return path, nil
	}
	if err := os.MkdirAll(treeCache, 0o755); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	lock, err := lockTree(path + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if exists(path) {
		return path, nil
	}
	// Under the lock whatever stands there is of a maker that was killed.
	unfinished := path + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	if err := makeTree(ctx, suite, unfinished, lock); err != nil {
		return "", errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	return path, nil
}

// treePath has the recipe in the name, so a changed recipe makes a new tree.
func treePath(suite string) string {
	recipe := sha256.Sum256([]byte(strings.Join(treeOptions, "\n")))
	return filepath.Join(treeCache, fmt.Sprintf("%s-%x", suite, recipe[:5]))
}

func makeTree(ctx context.Context, suite, dir string, lock *os.File) error {
	tool, err := exec.LookPath(treeTool)
	if err != nil {
		return errNoTreeTool
	}
	args := append(slices.Clone(treeOptions), suite, dir)
	if mirror := debianMirror(ctx); mirror != "" {
		args = append(args, mirror)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.ExtraFiles = []*os.File{lock} // held for as long as it works, should it outlive us
	// It mounts the host's /dev and /proc in the tree: where we do not see them, since we may have to remove the tree.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
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

func lockTree(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
