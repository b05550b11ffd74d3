package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// modify changes eth0's profile, reapplies it, and waits for the event.
func modify(t *testing.T, l *lab.Lab, n int, settings ...string) {
	t.Helper()
	run(t, l, "nmcli", append([]string{"connection", "modify", "eth0"}, settings...)...)
	run(t, l, "nmcli", "device", "reapply", "eth0")
	times(t, l, n, "reapply", "eth0")
}

// becomes waits until resolved has these servers for eth0, none for "".
func becomes(l *lab.Lab, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := l.Guest.Run(ctx, "resolvectl", "dns", "eth0")
		_, servers, _ := strings.Cut(out, "):")
		if got := strings.TrimSpace(servers); err == nil && got != want {
			err = fmt.Errorf("nameservers %q, want %q", got, want)
		}
		return err
	}
}

// What was pushed is ours for as long as resolved has exactly that, whatever
// happens between.
func TestOursStaysOurs(t *testing.T) {
	t.Parallel()
	static := []string{"ipv4.method", "manual", "ipv4.addresses", "10.77.0.100/24", "ipv4.gateway", lab.Gateway}
	tests := map[string]func(t *testing.T, l *lab.Lab) (want string){
		"never-default for a while, then another lease": func(t *testing.T, l *lab.Lab) string {
			modify(t, l, 1, "ipv4.never-default", "yes")
			modify(t, l, 2, "ipv4.never-default", "no")
			ok(t, l.Cloud.SetLease(t.Context(), "", lab.AzureLease().WithAddrs(lab.OptNameservers, lab.Gateway)))
			run(t, l, "nmcli", "connection", "up", "eth0")
			times(t, l, 2, "up", "eth0")
			return lab.Gateway
		},
		"never-default, then ignore-auto-dns, then disconnected": func(t *testing.T, l *lab.Lab) string {
			modify(t, l, 1, "ipv4.never-default", "yes")
			modify(t, l, 2, "ipv4.ignore-auto-dns", "yes") // 1.42.4 wants the lease's servers as before
			run(t, l, "nmcli", "device", "disconnect", "eth0")
			times(t, l, 1, "down", "eth0")
			return ""
		},
		"never-default, then disconnected": func(t *testing.T, l *lab.Lab) string {
			modify(t, l, 1, "ipv4.never-default", "yes")
			run(t, l, "nmcli", "device", "disconnect", "eth0")
			times(t, l, 1, "down", "eth0")
			return ""
		},
		"a static profile with the same DNS, then with another": func(t *testing.T, l *lab.Lab) string {
			modify(t, l, 1, append(static, "ipv4.dns", "168.63.129.16,10.77.0.1")...)
			modify(t, l, 2, "ipv4.dns", "10.77.0.99")
			return ""
		},
		"domains that differ in case": func(t *testing.T, l *lab.Lab) string {
			modify(t, l, 1, "ipv4.dns-search", "corp.example,Corp.Example")
			run(t, l, "nmcli", "device", "disconnect", "eth0")
			times(t, l, 1, "down", "eth0")
			if out := run(t, l, "resolvectl", "domain", "eth0"); strings.Contains(strings.ToLower(out), "corp.example") {
				t.Errorf("left behind: %s", out)
			}
			return ""
		},
	}
	for name, act := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, quiet())
				up(t, l, "eth0")
				eventually(t, l, "the lease's servers are there", becomes(l, leaseDNS))
				want := act(t, l)
				eventually(t, l, "what the policy says", func(ctx context.Context) error {
					event(t, l, "reapply", "eth0") // the event can come before NetworkManager's configuration has changed
					return becomes(l, want)(ctx)
				})
			})
		})
	}
}

// Nothing is kept for a link that is gone.
func TestGoneLinks(t *testing.T) {
	onEverySuite(t, func(t *testing.T, suite string) {
		c := quiet()
		c.Profiles = []lab.Profile{{ID: "eth0"}, {ID: "eth1"}}
		l := startProduct(t, suite, c)
		up(t, l, "eth0")
		for n := range 4 {
			ok(t, l.AddNIC(t.Context(), "eth1"))
			times(t, l, n+1, "up", "eth1")
			ok(t, l.RemoveNIC(t.Context(), "eth1"))
			times(t, l, n+1, "down", "eth1")
		}
		index := strings.TrimSpace(run(t, l, "cat", "/sys/class/net/eth0/ifindex"))
		for _, file := range strings.Fields(run(t, l, "ls", "-A", stateDir+"/links")) {
			if name, _, _ := strings.Cut(file, "."); name != index {
				t.Errorf("left of a link that is gone: %s", file)
			}
		}
	})
}
