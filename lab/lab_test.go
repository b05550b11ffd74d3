package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/lab"
)

func TestMain(m *testing.M) {
	lab.Main()
	os.Exit(m.Run())
}

// start makes a lab that lives as long as the test.
func start(t *testing.T, c lab.Config) *lab.Lab {
	t.Helper()
	if err := lab.Available(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
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

// eventually fails the test with all that the lab logged if f does not come to give no error.
func eventually(t *testing.T, l *lab.Lab, what string, f func(context.Context) error) {
	t.Helper()
	if err := l.Eventually(t.Context(), what, func() error { return f(t.Context()) }); err != nil {
		t.Fatal(err)
	}
}

// connected waits for a lease.
func connected(t *testing.T, l *lab.Lab, nic string) {
	t.Helper()
	if err := l.Connected(t.Context(), nic); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the guest that must not fail.
func run(t *testing.T, l *lab.Lab, name string, args ...string) string {
	t.Helper()
	out, err := l.Guest.Run(t.Context(), name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// onEverySuite runs a test on each Debian release, side by side.
func onEverySuite(t *testing.T, f func(t *testing.T, suite string)) {
	for _, suite := range lab.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			f(t, suite)
		})
	}
}

func TestLease(t *testing.T) {
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite})
		connected(t, l, "eth0")
		options := run(t, l, "nmcli", "-f", "DHCP4", "device", "show", "eth0")
		for _, want := range []string{"private_245 = a8:3f:81:10", "domain_name_servers = 168.63.129.16 10.77.0.1"} {
			if !strings.Contains(options, want) {
				t.Errorf("lease has no %q:\n%s", want, options)
			}
		}
	})
}

func TestWireServer(t *testing.T) {
	l := start(t, lab.Config{})
	connected(t, l, "eth0")
	if got := run(t, l, "curl", "-sS", "http://168.63.129.16/machine/?comp=goalstate"); !strings.Contains(got, "<GoalState") {
		t.Errorf("goal state is %q", got)
	}
	requests, err := l.Cloud.Requests(t.Context())
	if err != nil || len(requests) != 1 || requests[0].Path != "/machine/?comp=goalstate" {
		t.Errorf("requests are %+v, %v", requests, err)
	}
}

func TestResolvedGetsNameservers(t *testing.T) {
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite})
		eventually(t, l, "resolved has the lease's nameservers", func(ctx context.Context) error {
			got, err := l.Guest.Run(ctx, "resolvectl", "dns", "eth0")
			if err == nil && !strings.Contains(got, "168.63.129.16 10.77.0.1") {
				err = errors.New(got)
			}
			return err
		})
		if err := l.Cloud.SetName(t.Context(), "wire.lab.internal.cloudapp.net", lab.Constant); err != nil {
			t.Fatal(err)
		}
		if got := run(t, l, "getent", "ahostsv4", "wire"); !strings.HasPrefix(got, lab.Constant) {
			t.Errorf("wire is %q", got)
		}
	})
}

func TestResolvedGetsNothing(t *testing.T) {
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite, DNS: "none", ToResolved: "false"})
		eventually(t, l, "eth0 is up", happened(l, "up", "eth0"))
		if got := run(t, l, "resolvectl", "dns", "eth0"); strings.Contains(got, ".") {
			t.Errorf("nameservers of eth0: %s", got)
		}
	})
}

// happened tells if an event is over.
func happened(l *lab.Lab, action, iface string) func(context.Context) error {
	return func(context.Context) error {
		events, err := l.Guest.Events()
		for _, e := range events {
			if e.Action == action && e.Iface == iface {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("events are %v", events))
	}
}

func TestSystemd(t *testing.T) {
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite, Systemd: true})
		t.Log(run(t, l, "sh", "-c", "systemctl is-system-running; systemctl list-units --failed; systemd-analyze; ps ax; systemd-analyze blame; systemctl list-jobs; cat /proc/cmdline; journalctl | head -30"))
		connected(t, l, "eth0")
	})
}
