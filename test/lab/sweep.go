package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sweeper is the cgroup of a guest with systemd: the one thing of a lab that has a name on the host. A process of its
// own outlives the program, however that ends, to remove the cgroup and all that is in it.
type sweeper struct {
	dir   *os.File
	cmd   *exec.Cmd
	alive io.Closer
}

func newSweeper() (*sweeper, error) {
	top, err := cgroup2()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(top, "nm-azure-lab-")
	if err != nil {
		return nil, fmt.Errorf("lab: cgroup of the guest: %w", err)
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{roleSweep, path}, Env: ourEnv(), Dir: "/", Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	dir, err := os.Open(path)
	s := &sweeper{dir: dir, cmd: cmd, alive: alive}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close removes the cgroup.
func (s *sweeper) close() error {
	_ = s.dir.Close()
	return errors.Join(s.alive.Close(), s.cmd.Wait())
}

// sweepMain waits until the program that started it is gone.
func sweepMain(path string) error {
	_, _ = io.Copy(io.Discard, os.Stdin)
	err := os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0)
	for range 500 {
		if removeCgroup(path) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("lab: cgroup %s cannot be removed", path), err)
}

func removeCgroup(path string) bool {
	var dirs []string
	_ = filepath.WalkDir(path, func(dir string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, dir)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir)
	}
	return !exists(path)
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
