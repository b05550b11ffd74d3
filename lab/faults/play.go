package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Build builds the program as `make build` does, into a directory, and returns its path. It is called in the module.
func Build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "nm-azure-dispatch")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program,
		"github.com/nm-azure-dispatch/nm-azure-dispatch/cmd/nm-azure-dispatch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("faults: go build: %w\n%s", err, out)
	}
	return program, os.Chmod(dir, 0o755) // for the cases of a user
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

// Play plays one case to the program, in new namespaces.
func Play(ctx context.Context, program string, c Case) (Result, error) {
	return order{c, program}.delegate(ctx, roleCase, syscall.CLONE_NEWNET|syscall.CLONE_NEWNS)
}

// Outcome is a case that was played.
type Outcome struct {
	Case
	Result
	Faults []string // what is not as it must be; none: all is well
	Err    error    // the case could not be played
}

// PlayAll plays cases, so many at a time, and returns the outcomes in the order of the cases; done is told of each as it
// ends, one at a time. Most cases only wait, so there can be more at a time than there are cores.
func PlayAll(ctx context.Context, program string, cases []Case, parallel int, done func(Outcome)) []Outcome {
	outcomes := make([]Outcome, len(cases))
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, parallel)
	for _, i := range longestFirst(cases) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			o := Outcome{Case: cases[i]}
			if o.Result, o.Err = Play(ctx, program, cases[i]); o.Err == nil {
				o.Faults = Judge(o.Case, o.Result)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[i] = o
			done(o)
		})
	}
	wg.Wait()
	return outcomes
}
