package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

func TestMain(m *testing.M) {
	lab.Main()
	if mode := os.Getenv(holdEnv); mode != "" {
		hold(mode)
	}
	os.Exit(m.Run())
}

// start makes a lab that lives as long as the test.
func start(t *testing.T, c lab.Config) *lab.Lab {
	t.Helper()
	needLab(t)
	l, err := lab.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// needLab skips the test where no lab can be made, and fails it in CI. The short tests are those without a lab.
func needLab(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lab takes seconds")
	}
	if err := lab.Available(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// onEverySuite runs a test on each Debian release, in parallel: all that depends on what NetworkManager, systemd-resolved or
// systemd say and do, since each release says and does it differently.
func onEverySuite(t *testing.T, f func(t *testing.T, suite string)) {
	for _, suite := range lab.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			f(t, suite)
		})
	}
}

// everything tells whether to do what takes minutes (make faults), or what takes seconds.
func everything() bool { return os.Getenv("FAULTS") == "all" }

// onSomeSuites is onEverySuite for what depends on the program alone, on its records, locks and times, whatever the release: the
// daemons that hang or die, the records in disorder, the storms, the unit's waits, the host's record. make test runs these on the
// oldest release, and make faults on each: the lab is to take four minutes of make test's twenty on two cores.
func onSomeSuites(t *testing.T, f func(t *testing.T, suite string)) {
	if everything() {
		onEverySuite(t, f)
		return
	}
	t.Run(lab.Suites[0], func(t *testing.T) {
		t.Parallel()
		f(t, lab.Suites[0])
	})
}

// eventually fails the test, with all that the lab logged, if f does not come to give no error.
func eventually(t *testing.T, l *lab.Lab, what string, f func(context.Context) error) {
	t.Helper()
	if err := l.Eventually(t.Context(), what, func() error { return f(t.Context()) }); err != nil {
		t.Fatal(err)
	}
}

// connected waits until an interface has its lease.
func connected(t *testing.T, l *lab.Lab, nic string) {
	t.Helper()
	ok(t, l.Connected(t.Context(), nic))
}

// run runs a command in the guest that must not fail.
func run(t *testing.T, l *lab.Lab, name string, args ...string) string {
	t.Helper()
	out, err := l.Guest.Run(t.Context(), name, args...)
	ok(t, err)
	return out
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// prints reports whether what a command of the guest prints has the words in it.
func prints(l *lab.Lab, words string, name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := l.Guest.Run(ctx, name, args...)
		if err == nil && !strings.Contains(out, words) {
			err = fmt.Errorf("no %q in %q", words, out)
		}
		return err
	}
}

// happened reports whether an event is over.
func happened(l *lab.Lab, action, iface string) func(context.Context) error {
	return func(context.Context) error {
		events, err := l.Guest.Events()
		for _, e := range events {
			if e.Action == action && e.Iface == iface {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("events are %v", actions(events, iface)))
	}
}

// actions are those of the events of an interface.
func actions(events []lab.Event, iface string) []string {
	var names []string
	for _, e := range events {
		if e.Iface == iface {
			names = append(names, e.Action)
		}
	}
	return names
}
