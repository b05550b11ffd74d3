package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

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

// Outcome is a case that was played.
type Outcome struct {
	Case
	Result
	Faults []string // what is not as it must be; none: all is well
}

// PlayAll plays cases, so many at a time, and returns the outcomes in the order of the cases; done is called for each as it
// ends, one at a time. Most cases only wait, so there can be more at a time than there are cores.
func PlayAll(ctx context.Context, program string, cases []Case, parallel int, done func(Outcome)) []Outcome {
	outcomes := make([]Outcome, len(cases))
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, parallel)
	for i, c := range cases {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r, err := order{c, program}.delegate(ctx, roleCase, syscall.CLONE_NEWNET|syscall.CLONE_NEWNS)
			o := Outcome{Case: c, Result: r, Faults: judge(c, r)}
			if err != nil {
				o.Faults = []string{err.Error()}
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
