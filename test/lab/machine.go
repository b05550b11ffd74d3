package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Machine is one side of a lab: a process that is PID 1 of its namespaces, and what runs in them.
type Machine struct {
	cmd     *exec.Cmd
	control *rpc.Client
	exited  chan struct{}
}

// startMachine starts this executable once more as PID 1 of new namespaces. A cgroup other than nil is the machine's.
func startMachine(role string, cgroup *os.File) (*Machine, error) {
	ours, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	attr := &syscall.SysProcAttr{
		Setsid: true, // an interrupt at the terminal is for the program, not for its machines
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
			unix.CLONE_NEWCGROUP,
	}
	if cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(cgroup.Fd())
		attr.Cloneflags &^= unix.CLONE_NEWCGROUP // would have our cgroup as its root: the machine makes its own
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{role}, Env: ourEnv(), Dir: "/",
		Stderr: os.Stderr, ExtraFiles: []*os.File{theirs}, SysProcAttr: attr,
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: start %s: %w", role, err), ours.Close())
	}
	m := &Machine{cmd: cmd, control: rpc.NewClient(ours), exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(m.exited)
	}()
	return m, nil
}

func controlPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("lab: control socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("lab: control socket: %w", err), theirs.Close())
	}
	return conn, theirs, nil
}

// PID is the machine's PID 1, as the host sees it.
func (m *Machine) PID() int { return m.cmd.Process.Pid }

// Run runs a command in the machine and returns what it printed on standard output, without the last newline. The
// error of a command that fails ends with what it printed on standard error.
func (m *Machine) Run(ctx context.Context, name string, args ...string) (string, error) {
	return m.enter(ctx, "", append([]string{"-m", "-u", "-i", "-p", "-C", "--", name}, args...)...)
}

// ip feeds commands of ip(8) to the host's ip in the machine's network namespace.
func (m *Machine) ip(ctx context.Context, commands ...string) error {
	_, err := m.enter(ctx, strings.Join(commands, "\n"), "--", "ip", "-batch", "-")
	return err
}

// enter runs nsenter in the machine's network namespace and whatever other namespaces its arguments begin with.
func (m *Machine) enter(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(m.PID()), "-n"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = smallEnv(), strings.NewReader(stdin), &stdout, &stderr
	// nsenter waits for its child in the pid namespace: end both, as one group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	err := cmd.Run()
	out := strings.TrimSuffix(stdout.String(), "\n")
	if err != nil {
		return out, fmt.Errorf("lab: %s: %w: %s", strings.Join(args, " "), errors.Join(err, ctx.Err()),
			strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// call makes a call to one of the services that the machine's PID 1 offers.
func (m *Machine) call(ctx context.Context, method string, arg, reply any) error {
	return callRPC(ctx, m.control, method, arg, reply)
}

func callRPC(ctx context.Context, client *rpc.Client, method string, arg, reply any) error {
	select {
	case done := <-client.Go(method, arg, reply, make(chan *rpc.Call, 1)).Done:
		if done.Error != nil {
			return fmt.Errorf("lab: %s: %w", method, done.Error)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("lab: %s: %w", method, context.Cause(ctx))
	}
}

// stop ends the machine and returns when the kernel has ended everything in it.
func (m *Machine) stop() {
	_ = m.cmd.Process.Kill()
	<-m.exited
	_ = m.control.Close()
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
