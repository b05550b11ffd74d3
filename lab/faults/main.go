package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

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

// Main returns at once unless this process was started by the package to play a case. Call it first thing in main or
// TestMain.
func Main() {
	var work func(order) (Result, error)
	switch os.Args[0] {
	case roleCase:
		work = order.play
	case roleRun:
		work = order.run
	default:
		return
	}
	var o order
	err := json.NewDecoder(os.Stdin).Decode(&o)
	if err == nil {
		var r Result
		if r, err = work(o); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(r)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.Case.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// delegate has another process of this executable do the work.
func (o order) delegate(ctx context.Context, role string, cloneflags uintptr) (Result, error) {
	in, err := json.Marshal(o)
	if err != nil {
		return Result{}, fmt.Errorf("faults: %s: %w", o.Case.Name, err)
	}
	cmd := namespace.Command(ctx, role)
	cmd.SysProcAttr.Cloneflags = cloneflags
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return Result{}, fmt.Errorf("faults: %s: %w: %s", o.Case.Name, err, stderr.String())
	}
	var r Result
	if err := json.Unmarshal(out, &r); err != nil {
		return Result{}, fmt.Errorf("faults: %s: %w", o.Case.Name, err)
	}
	return r, nil
}
