package faults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// enough is a --timeout that ends no case that should succeed.
	enough = 5 * time.Minute
	// overdue is how long after its time a program that does not end is killed.
	overdue = 20 * time.Second
)

// run runs the program and returns what can be seen of it from outside.
func (o order) run() (Result, error) {
	c := o.Case
	argv, env := o.commandLine()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	closePipe, err := c.Start.Pipe.attach(cmd, &stderr)
	if err != nil {
		return Result{}, err
	}
	defer closePipe()

	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	kill := time.AfterFunc(c.Want.Within+overdue, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	most := make(chan int)
	ended := make(chan struct{})
	go func() { most <- mostFiles(cmd.Process.Pid, ended) }()
	err = cmd.Wait()
	r := Result{Took: time.Since(start)}
	close(ended)
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return Result{}, err
	}
	r.FDs, r.Status = <-most, cmd.ProcessState.ExitCode()
	r.PeakKiB = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	r.Stderr = stderr.String()
	return r, nil
}

func (o order) commandLine() (argv, env []string) {
	start := o.Case.Start
	argv, env = []string{o.Program}, append([]string{}, start.Env...)
	if start.Hook {
		argv = append(argv, "lo", "up")
		env = append(env, "NM_DISPATCHER_ACTION=up", "DHCP4_IP_ADDRESS=10.0.0.4")
	} else {
		argv = append(argv, "check-in", "--server", constant, "--timeout", cmp.Or(start.Timeout, enough).String())
	}
	if start.Shell != "" {
		argv = append([]string{"/bin/sh", "-c", start.Shell, "sh"}, argv...)
	}
	return argv, env
}

// attach makes the pipe the command's standard error.
func (p Pipe) attach(cmd *exec.Cmd, buf *bytes.Buffer) (end func(), err error) {
	if p == Readable {
		cmd.Stderr = buf
		return func() {}, nil
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	r, w := os.NewFile(uintptr(fds[0]), "read end"), os.NewFile(uintptr(fds[1]), "write end")
	cmd.Stderr = w
	if p == Broken {
		_ = r.Close()
		return func() { _ = w.Close() }, nil
	}
	if err := fill(fds[1]); err != nil {
		return nil, err
	}
	return func() { _, _ = r.Close(), w.Close() }, nil
}

// fill writes to a pipe until no byte more has room, and leaves it in blocking mode.
func fill(fd int) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	for {
		if _, err := unix.Write(fd, []byte{0}); errors.Is(err, unix.EAGAIN) {
			return unix.SetNonblock(fd, false)
		} else if err != nil {
			return err
		}
	}
}

// mostFiles returns how many files a process had open at most, as far as can be seen by looking now and then.
func mostFiles(pid int, ended <-chan struct{}) (most int) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		entries, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
		most = max(most, len(entries))
		select {
		case <-ended:
			return most
		case <-time.After(wait):
		}
	}
}

// attempts is how many the program's record has; there may be none.
func attempts() int {
	var rec struct{ Attempts int }
	b, _ := os.ReadFile("/run/nm-azure-dispatch/check-in.json")
	_ = json.Unmarshal(b, &rec)
	return rec.Attempts
}
