package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
)

// Machine is one side of a lab: a process that is PID 1 of its namespaces, and what runs in them. PID 1 ends when its
// standard input does, and so with the program that has the lab.
type Machine struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{}
}

// startMachine starts this executable once more as PID 1 of new namespaces, with a root of its own if the specification is
// not nil. A cgroup other than nil is the machine's.
func startMachine(spec *inside.GuestSpec, cgroup *os.File) (*Machine, error) {
	arg, _ := json.Marshal(spec) // a struct of strings
	attr := &syscall.SysProcAttr{
		Setsid:     true, // an interrupt at the terminal is for the program, not for its machines
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(cgroup.Fd())
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{roleMachine, string(arg)}, Env: ourEnv(), Dir: "/",
		Stderr: os.Stderr, SysProcAttr: attr,
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("lab: start a machine: %w", err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len(inside.Ready))); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: make a machine: %w", err), cmd.Wait())
	}
	m := &Machine{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(m.exited)
	}()
	return m, nil
}

// PID is the machine's PID 1, as the host sees it.
func (m *Machine) PID() int { return m.cmd.Process.Pid }

// all are the namespaces of a machine.
const all = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP

// in calls a function in namespaces of the machine: sockets that it makes are there, and processes that it starts.
func (m *Machine) in(namespaces int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
		if unix.Gettid() == os.Getpid() {
			// But not the process's first thread, which is kept from the next goroutine here.
			defer runtime.UnlockOSThread()
			done <- m.in(namespaces, f)
			return
		}
		pidfd, err := unix.PidfdOpen(m.PID(), 0)
		if err == nil {
			err = errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(pidfd, namespaces), unix.Close(pidfd))
		}
		if err != nil {
			done <- fmt.Errorf("lab: enter namespaces: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Run runs a command in the machine and returns what it printed on standard output, without the last newline. The
// error of a command that fails ends with what it printed on standard error.
func (m *Machine) Run(ctx context.Context, name string, args ...string) (string, error) {
	return m.run(ctx, all, "", append([]string{"/usr/bin/env", name}, args...)...)
}

// ip feeds commands of ip(8) to the host's ip in the machine's network namespace.
func (m *Machine) ip(ctx context.Context, commands ...string) error {
	_, err := m.run(ctx, unix.CLONE_NEWNET, strings.Join(commands, "\n"), "ip", "-batch", "-")
	return err
}

func (m *Machine) run(ctx context.Context, namespaces int, stdin string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = smallEnv(), strings.NewReader(stdin), &stdout, &stderr
	// A command that is broken off ends with its children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	err := m.in(namespaces, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	out := strings.TrimSuffix(stdout.String(), "\n")
	if err != nil {
		return out, fmt.Errorf("lab: %s: %w: %s", strings.Join(argv, " "), errors.Join(err, ctx.Err()),
			strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// stop ends the machine and returns when the kernel has ended everything in it. It may be called again.
func (m *Machine) stop() {
	_ = m.cmd.Process.Kill()
	<-m.exited
	_ = m.stdin.Close()
}

// ourEnv is for processes that are this executable. One built with the race detector would linger at its end.
func ourEnv() []string { return append(smallEnv(), "GORACE=atexit_sleep_ms=0") }

// smallEnv is what every process in a lab starts with.
func smallEnv() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0",
	}
}
