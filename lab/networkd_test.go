package lab_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// The unit on machines whose network is that of systemd-networkd, with the real daemons.

const (
	networkd     lab.Daemon = "systemd-networkd"
	networkFile             = "/etc/systemd/network/10-eth0.network"
	unitWants               = "/usr/lib/systemd/system/systemd-networkd.service.wants/" + unit
	dhcpNetwork             = "[Match]\nName=eth*\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=ipv6\n"
	staticConfig            = "[Match]\nName=eth0\n[Network]\nAddress=10.77.0.9/24\nGateway=10.77.0.1\nDNS=10.77.0.1\n"
)

// networkdGuest is a guest with systemd where NetworkManager is masked, and systemd-networkd, which is not started yet,
// manages eth0.
func networkdGuest(network string) lab.Config {
	return lab.Config{
		Systemd: true,
		Daemons: map[lab.Daemon]lab.State{lab.NetworkManager: lab.Masked},
		Files:   map[string]string{networkFile: network},
	}
}

// tells reports whether the release's systemd-networkd tells option 245.
func tells(suite string) bool { return suite != "bookworm" }

// networkdCase is a way to start, and what has to be in the end.
type networkdCase struct {
	name   string
	config lab.Config
	start  func(*testing.T, *lab.Lab)
	source func(suite string) string // "" for either
	kinds  []string
}

func startNetworkd(t *testing.T, l *lab.Lab) {
	t.Helper()
	ok(t, l.Guest.Start(t.Context(), networkd))
}

// addressed waits until systemd-networkd has given eth0 its address.
func addressed(t *testing.T, l *lab.Lab) {
	t.Helper()
	eventually(t, l, "eth0 is routable", prints(l, "routable", "networkctl", "status", "eth0"))
}

// apart starts systemd-networkd without the unit.
func apart(t *testing.T, l *lab.Lab) {
	t.Helper()
	run(t, l, "rm", unitWants)
	run(t, l, "systemctl", "daemon-reload")
	startNetworkd(t, l)
	addressed(t, l)
}

func networkdCases() []networkdCase {
	asTold := func(suite string) string {
		if tells(suite) {
			return "option-245"
		}
		return "constant"
	}
	byDefault := func(string) string { return "constant" }
	silent := lab.AzureLease()
	silent.Silent = true
	secondary := lab.AzureLease().Without(lab.OptRouter).Without(lab.OptClasslessRoute).WithAddrs(lab.OptWireServer, lab.Other)
	noLease := []string{"checked-in", "option-245-unusable"}
	return []networkdCase{
		{name: "first boot", config: networkdGuest(dhcpNetwork), start: startNetworkd, source: asTold, kinds: checkedIn},
		{
			name: "DHCP late", config: with(networkdGuest(dhcpNetwork), withLease(silent)), source: asTold, kinds: checkedIn,
			start: func(t *testing.T, l *lab.Lab) {
				startNetworkd(t, l)
				time.Sleep(7 * time.Second)
				l.Cloud.SetLease("", lab.AzureLease())
			},
		},
		{name: "static", config: networkdGuest(staticConfig), start: startNetworkd, source: byDefault, kinds: noLease},
		{
			name: "networkd stopped", config: networkdGuest(dhcpNetwork), source: byDefault, kinds: noLease,
			start: func(t *testing.T, l *lab.Lab) {
				apart(t, l)
				ok(t, l.Guest.Signal(t.Context(), networkd, unix.SIGSTOP))
				run(t, l, "systemctl", "start", unit)
			},
		},
		{ // as when the initrd hands over to the real root
			name: "networkd restarted", config: networkdGuest(dhcpNetwork), source: asTold, kinds: checkedIn,
			start: func(t *testing.T, l *lab.Lab) {
				apart(t, l)
				ok(t, l.Guest.Symlink("../"+unit, unitWants))
				run(t, l, "systemctl", "daemon-reload")
				ok(t, l.Guest.Restart(t.Context(), networkd))
			},
		},
		{
			name: "networkd restarted, DHCP silent", config: networkdGuest(dhcpNetwork), source: byDefault,
			start: func(t *testing.T, l *lab.Lab) {
				apart(t, l)
				l.Cloud.SetLease("", silent)
				ok(t, l.Guest.Symlink("../"+unit, unitWants))
				run(t, l, "systemctl", "daemon-reload")
				ok(t, l.Guest.Restart(t.Context(), networkd))
			},
		},
		{
			name: "two NICs", source: asTold, kinds: checkedIn, start: startNetworkd,
			config: with(networkdGuest(dhcpNetwork), func(c *lab.Config) {
				c.NICs, c.Leases = []string{"eth1", "eth0"}, map[string]lab.Lease{"eth1": secondary}
			}),
		},
	}
}

// One Ready each, no failed attempt, and no entry that is not true.
func TestNetworkd(t *testing.T) {
	t.Parallel()
	for _, tt := range networkdCases() {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, tt.config)
				tt.start(t, l)
				becomesReady(t, l)
				rec := checkInRecord(t, l)
				if want := tt.source(suite); rec.Source != want || rec.Attempts != 1 {
					t.Errorf("record %+v, want %s after one attempt", rec, want)
				}
				time.Sleep(500 * time.Millisecond) // for a second Ready
				if got := requests(t, l); !slices.Equal(got, once) {
					t.Errorf("requests %v", got)
				}
				if got := kinds(t, l); tt.kinds != nil && !slices.Equal(got, tt.kinds) {
					t.Errorf("entries %v, want %v\n%s", got, tt.kinds, l.Dump(t.Context()))
				}
			})
		})
	}
}

func becomesReady(t *testing.T, l *lab.Lab) {
	t.Helper()
	boot := labBoot(t, l)
	eventually(t, l, "Ready", isReady(l, boot))
}

// Both managers on one machine, each with a NIC of its own: the lease of the one with the default route counts, and
// there is one Ready.
func TestBothManagers(t *testing.T) {
	t.Parallel()
	secondary := lab.AzureLease().Without(lab.OptRouter).Without(lab.OptClasslessRoute)
	primary := lab.AzureLease().WithAddrs(lab.OptWireServer, lab.Other)
	onEverySuite(t, func(t *testing.T, suite string) {
		l := startProduct(t, suite, lab.Config{
			Systemd: true, DNS: "none", ToResolved: "false",
			NICs: []string{"eth0", "eth1"}, Profiles: []lab.Profile{{ID: "eth0"}},
			Leases:  map[string]lab.Lease{"eth0": primary, "eth1": secondary},
			NMConf:  "[keyfile]\nunmanaged-devices=interface-name:eth1\n",
			Daemons: map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped},
			Files:   map[string]string{networkFile: strings.Replace(dhcpNetwork, "eth*", "eth1", 1)},
		})
		startNetworkd(t, l)
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		becomesReady(t, l)
		if rec := checkInRecord(t, l); rec.Source != "option-245" || rec.Attempts != 1 {
			t.Errorf("record %+v\n%s", rec, l.Dump(t.Context()))
		}
		oneReady(t, l, labBoot(t, l))
	})
}

// The unit began with the default address, which does not answer; then a lease names another. It is followed at once,
// and the attempts before are not forgotten.
func TestNewAddressIsFollowed(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		c := networkdGuest(staticConfig)
		c.Lease = new(lab.AzureLease().WithAddrs(lab.OptWireServer, lab.Other))
		l := startProduct(t, suite, c)
		if !tells(suite) {
			t.Skip("systemd-networkd does not tell option 245")
		}
		blockDefault(t, l)
		startNetworkd(t, l)
		logged(t, l, "attempt-failed")
		ok(t, l.Guest.WriteFile(networkFile, dhcpNetwork, 0o644))
		run(t, l, "networkctl", "reload")
		eventually(t, l, "a lease", prints(l, "default via 10.77.0.1 dev eth0 proto dhcp", "ip", "route"))
		readyAt(t, l, lab.Other, time.Now())
	})
}

// Being stopped is no failure, and says nothing; one that was killed continues.
func TestUnitStoppedAndKilled(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := startProduct(t, suite, networkdGuest(dhcpNetwork))
		l.Cloud.CloseWire()
		startNetworkd(t, l)
		logged(t, l, "attempt-failed")
		pid := run(t, l, "systemctl", "show", "-P", "MainPID", unit)
		run(t, l, "systemctl", "kill", "-s", "KILL", unit)
		eventually(t, l, "the unit continues", func(ctx context.Context) error {
			out, err := l.Guest.Run(ctx, "systemctl", "show", "-P", "MainPID", unit)
			if err == nil && (out == "0" || out == pid) {
				err = errors.New("it has not")
			}
			return err
		})
		before := checkInRecord(t, l).Attempts
		eventually(t, l, "the next attempt", func(context.Context) error {
			if got := checkInRecord(t, l).Attempts; got <= before {
				return fmt.Errorf("%d attempts", got)
			}
			return nil
		})
		run(t, l, "systemctl", "stop", unit)
		if got := run(t, l, "systemctl", "show", "-P", "Result,ExecMainStatus", unit); got != "success\n0" {
			t.Errorf("the unit's result is %q", got)
		}
		if got := kinds(t, l); slices.Contains(got, "given-up") {
			t.Errorf("entries %v", got)
		}
		if rec := checkInRecord(t, l); rec.State != "trying" || rec.Attempts < before {
			t.Errorf("record %+v", rec)
		}
		ok(t, l.Cloud.PlayWire(lab.WireScript{}))
		run(t, l, "systemctl", "start", unit)
		becomesReady(t, l)
	})
}
