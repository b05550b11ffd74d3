package lab_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// blockDefault makes the guest drop what it sends to the WireServer's default address.
func blockDefault(t *testing.T, l *lab.Lab) {
	t.Helper()
	run(t, l, "nft", "add table ip x; add chain ip x out { type filter hook output priority 0; }; "+
		"add rule ip x out ip daddr "+lab.Constant+" tcp dport 80 drop")
}

// The unit began with the default address, which does not answer, before NetworkManager had a lease; the lease names
// another. The hook finds the lock held, the unit follows.
func TestFirstLeaseIsFollowed(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		c := withUnits(quiet())
		c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
		c.Lease = new(lab.AzureLease().WithAddrs(lab.OptWireServer, lab.Other))
		c.NICs, c.Profiles = []string{"eth0", "eth1"}, []lab.Profile{{ID: "eth0"}}
		l := startProduct(t, suite, c)
		blockDefault(t, l)
		run(t, l, "sh", "-c", "ip addr add 10.77.0.9/24 dev eth1; ip route add default via 10.77.0.1 metric 9999")
		run(t, l, "systemctl", "start", unit)
		logged(t, l, "attempt-failed")
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		connected(t, l, "eth0")
		readyAt(t, l, lab.Other, time.Now())
	})
}

// The lease names another WireServer when it is renewed: the address and the routes stay as they were.
func TestRenewedLeaseIsFollowed(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		c := withUnits(quiet())
		c.Lease = new(lab.AzureLease().WithTimes(6 * time.Second))
		c.Daemons = map[lab.Daemon]lab.State{lab.Dispatcher: lab.Masked, lab.NetworkManager: lab.Stopped}
		l := startProduct(t, suite, c)
		blockDefault(t, l)
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		connected(t, l, "eth0")
		run(t, l, "systemctl", "start", unit)
		logged(t, l, "attempt-failed")
		l.Cloud.SetLease("", lab.AzureLease().WithTimes(time.Hour).WithAddrs(lab.OptWireServer, lab.Other))
		eventually(t, l, "the lease is renewed", func(ctx context.Context) error {
			return prints(l, "0a:4d:01:10", "sh", "-c", "busctl call org.freedesktop.NetworkManager /org/freedesktop/NetworkManager/DHCP4Config/1 "+
				"org.freedesktop.DBus.Properties Get ss org.freedesktop.NetworkManager.DHCP4Config Options")(ctx)
		})
		readyAt(t, l, lab.Other, time.Now())
	})
}

// readyAt waits until the check-in is done at a server that is not the one that was tried first.
func readyAt(t *testing.T, l *lab.Lab, server string, since time.Time) {
	t.Helper()
	becomesReady(t, l)
	rec := checkInRecord(t, l)
	if rec.WireServer != server || rec.Source != "option-245" || rec.Attempts < 2 {
		t.Errorf("record %+v\n%s", rec, l.Dump(t.Context()))
	}
	t.Log(fmt.Sprint("Ready ", time.Since(since), " after the lease was seen, after ", rec.Attempts, " attempts"))
}
