package lab_test

import (
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// The WireServer is away while interfaces come up: the hook hands over after a
// second, so that another interface's up is at most that late, and the unit checks in when the WireServer is back.
func TestHandOver(t *testing.T) {
	t.Parallel()
	hang := []lab.WireStep{{Times: -1, Hang: true}}
	for name, away := range map[string]func(*testing.T, *lab.Lab){
		"refuses": func(t *testing.T, l *lab.Lab) { ok(t, l.Cloud.CloseWire(t.Context())) },
		"hangs": func(t *testing.T, l *lab.Lab) {
			ok(t, l.Cloud.PlayWire(t.Context(), lab.WireScript{GoalState: hang, Health: hang, Provisioning: hang}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				c := quiet()
				c.Systemd, c.NICs = true, []string{"eth0", "eth1"}
				c.Leases = map[string]lab.Lease{"eth1": lab.AzureLease().Without(lab.OptRouter).WithRoutes(map[string]string{"10.78.0.0/16": lab.Gateway})}
				c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
				l := startProduct(t, suite, c)
				away(t, l)
				ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
				up(t, l, "eth0")
				up(t, l, "eth1")
				events, err := l.Guest.Events()
				ok(t, err)
				for _, e := range events {
					if took := e.Ended.Sub(e.Began); took > 8*time.Second { // 1.3 s, and a busy machine
						t.Errorf("%s %s took %v", e.Iface, e.Action, took)
					}
				}
				find(t, l, "handed-over")
				if got := linkDNS(t, l, "eth0"); got != leaseDNS {
					t.Errorf("nameservers %q meanwhile, want %q", got, leaseDNS)
				}
				before := len(requests(t, l))
				ok(t, l.Cloud.PlayWire(t.Context(), lab.WireScript{}))
				eventually(t, l, "the unit has checked in", prints(l, `"state": "ready"`, "cat", "/run/nm-azure-dispatch/check-in.json"))
				after := requests(t, l)[before:]
				if got := count2(after, health) + count2(after, "POST /provisioning/health"); got != 1 {
					t.Errorf("%d Readys", got)
				}
			})
		})
	}
}

// Without the unit the hook fails in the way that the dispatcher logs, and the
// next event tries again.
func TestNoUnit(t *testing.T) {
	t.Parallel()
	onSomeSuites(t, func(t *testing.T, suite string) {
		c := quiet()
		c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
		l := startProduct(t, suite, c)
		ok(t, l.Cloud.CloseWire(t.Context()))
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		up(t, l, "eth0")
		find(t, l, "given-up")
		find(t, l, "attempt-failed")
		ok(t, l.Cloud.PlayWire(t.Context(), lab.WireScript{}))
		event(t, l, "up", "eth0")
		find(t, l, "checked-in")
	})
}
