package boottest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// world is a set of namespaces and a cgroup. Its first process waits for the end of its standard input, which is when
// the test closes it or is gone.
type world struct {
	init   *exec.Cmd
	life   io.Closer
	cgroup *os.File
	sweep  *exec.Cmd
	swept  io.Closer
}

// scratch is where a world has its own files: a tmpfs over a directory of the host that is there and not needed.
const scratch = "/mnt"

// firstProcess makes the world's mounts, in which the host's files cannot be changed. The cgroup namespace comes last:
// its root is to be the world's cgroup.
const firstProcess = `set -e
mount --make-rprivate /
mount -o remount,bind,ro /
mount -t proc proc /proc
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t tmpfs -o mode=755 boottest ` + scratch + `
mkdir ` + scratch + `/upper ` + scratch + `/work ` + scratch + `/root ` + scratch + `/shared
mount -t overlay -o lowerdir="$1",upperdir=` + scratch + `/upper,workdir=` + scratch + `/work boottest ` + scratch + `/root
exec unshare --cgroup sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && echo ready && exec cat'`

// sweeper outlives the test to remove the cgroup, the one thing that has a name outside of the namespaces.
const sweeper = `cat; for i in $(seq 100); do
	find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; [ -d "$1" ] || exit 0; sleep 0.05; done; exit 1`

// newWorld makes a world in which the tree is below scratch/root, writable.
func newWorld(tree string) (*world, error) {
	top, err := cgroup2()
	if err != nil {
		return nil, err
	}
	cgroup, err := os.MkdirTemp(top, "nm-azure-boottest-")
	if err != nil {
		return nil, err
	}
	w := &world{sweep: exec.Command("sh", "-c", sweeper, "sh", cgroup)}
	w.sweep.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is for the test
	if w.swept, err = w.sweep.StdinPipe(); err != nil {
		return nil, err
	}
	if err := w.sweep.Start(); err != nil {
		return nil, errors.Join(err, os.Remove(cgroup))
	}
	if w.cgroup, err = os.Open(cgroup); err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.init = exec.Command("sh", "-c", firstProcess, "sh", tree)
	w.init.Stderr = os.Stderr
	w.init.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, UseCgroupFD: true, CgroupFD: int(w.cgroup.Fd()),
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	stdout, err := w.init.StdoutPipe()
	if err == nil {
		w.life, err = w.init.StdinPipe()
	}
	if err == nil {
		err = w.init.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(stdout).ReadString('\n')
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("boottest: namespaces: %w", err), w.close())
	}
	return w, nil
}

// close ends everything in the world and returns when it is gone.
func (w *world) close() error {
	if w.life != nil {
		_ = w.life.Close()
		_ = w.init.Wait() // by a signal or not
	}
	return errors.Join(w.swept.Close(), w.sweep.Wait())
}

// path is where the host sees a file of the world.
func (w *world) path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(w.init.Process.Pid), "root", scratch, name)
}

// command is a command of the host's that runs in the world.
func (w *world) command(ctx context.Context, argv ...string) *exec.Cmd {
	args := append([]string{"-t", strconv.Itoa(w.init.Process.Pid), "-m", "-n", "-u", "-i", "-p", "-C", "--"}, argv...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, UseCgroupFD: true, CgroupFD: int(w.cgroup.Fd())}
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C"}
	return cmd
}

// run runs a command to its end.
func (w *world) run(ctx context.Context, argv ...string) error {
	if out, err := w.command(ctx, argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("boottest: %s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// cgroup2 finds where the host has the unified hierarchy.
func cgroup2() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", errors.New("boottest: no cgroup2 is mounted: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified")
}
