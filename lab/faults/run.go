package faults

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// enough is a --timeout that ends no case that should succeed.
	enough = 5 * time.Minute
	// overdue is how long after its time a program that does not end is killed.
	overdue = 20 * time.Second
)

// run runs the program and returns what can be seen of it from outside.
func (o order) run() Result {
	ctx, cancel := context.WithTimeout(context.Background(), o.Case.Want.Within+overdue)
	defer cancel()
	argv, env := o.commandLine()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	must(cmd.Start())
	ended, most := make(chan struct{}), make(chan int)
	go func() { most <- mostFiles(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	r := Result{Took: time.Since(start)}
	close(ended)
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		must(err)
	}
	r.FDs, r.Status = <-most, cmd.ProcessState.ExitCode()
	r.PeakKiB = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	r.Stderr = stderr.String()
	return r
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
