package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// sweeper is the cgroup of a guest with systemd: the one thing of a lab that has a name on the host. A process of its
// own outlives the program, however that ends, to remove the cgroup and all that is in it.
type sweeper struct {
	dir   *os.File
	cmd   *exec.Cmd
	alive io.Closer
}

// sweep waits until its standard input ends, and then removes the cgroup that is its argument.
const sweep = `cat >/dev/null
echo 1 >"$0/cgroup.kill"
for i in $(seq 500); do
	find "$0" -depth -type d -exec rmdir {} + 2>/dev/null
	[ -e "$0" ] || exit 0
	sleep 0.02
done
echo "lab: cgroup $0 cannot be removed" >&2
exit 1`

func newSweeper() (*sweeper, error) {
	top, err := cgroup2()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(top, "nm-azure-lab-")
	if err != nil {
		return nil, fmt.Errorf("lab: cgroup of the guest: %w", err)
	}
	cmd := exec.Command("/bin/sh", "-c", sweep, path)
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.SysProcAttr = smallEnv(), "/", os.Stderr, &syscall.SysProcAttr{Setsid: true}
	alive, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	dir, err := os.Open(path)
	return &sweeper{dir, cmd, alive}, err
}

// close removes the cgroup.
func (s *sweeper) close() error {
	_ = s.dir.Close()
	return errors.Join(s.alive.Close(), s.cmd.Wait())
}

// cgroup2 finds where the host has the unified hierarchy.
func cgroup2() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", errors.New("lab: a guest with systemd needs cgroup2: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified")
}
