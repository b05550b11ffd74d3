package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
)

// What this executable is called when it plays a case, and when it runs the program in one. The latter is a process of
// its own to be small: what is measured as the memory of a program is at least that of the process which started it.
const (
	roleCase = "nm-azure-faults-case"
	roleRun  = "nm-azure-faults-run"
)

// order is what these receive.
type order struct {
	Case    Case
	Program string
}

// Outcome is a case that was played.
type Outcome struct {
	Case
	Result
	Faults []string // what is not as it must be; none: all is well
}

// Available tells why no case can be played here.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("faults: only root can make namespaces: run as root")
	}
	for tool, pkg := range map[string]string{"ip": "iproute2", "setpriv": "util-linux", "dbus-daemon": "dbus-daemon"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("faults: %s is missing: apt-get install %s", tool, pkg)
		}
	}
	return nil
}

// Play plays a case to the program at this path.
func Play(ctx context.Context, program string, c Case) Outcome {
	r, err := order{c, program}.delegate(ctx, roleCase, syscall.CLONE_NEWNET|syscall.CLONE_NEWNS)
	if err != nil {
		return Outcome{c, r, []string{err.Error()}}
	}
	return Outcome{c, r, judge(c, r)}
}

// Main returns at once unless this process was started by the package to play a case. Call it first thing in main or
// TestMain.
func Main() {
	work := map[string]func(order) Result{roleCase: order.play, roleRun: order.run}[os.Args[0]]
	if work == nil {
		return
	}
	var o order
	must(json.NewDecoder(os.Stdin).Decode(&o))
	must(json.NewEncoder(os.Stdout).Encode(work(o)))
	os.Exit(0)
}

// must ends this process, which plays a case, with the error if there is one.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// delegate has another process of this executable do the work.
func (o order) delegate(ctx context.Context, role string, cloneflags uintptr) (r Result, err error) {
	in, err := json.Marshal(o)
	if err != nil {
		return r, err
	}
	cmd := namespace.Command(ctx, role)
	cmd.SysProcAttr.Cloneflags = cloneflags
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%s: %w: %s", role, err, stderr.String())
	}
	return r, json.Unmarshal(out, &r)
}
