package lab_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// The cases of the product on both NetworkManagers. Each says what is right
// before it looks: requests at the WireServer, resolved's servers for eth0, and
// the kinds of journal entries.

// productCase is a guest, what happens to it once eth0 is up, and what must have
// come of it.
type productCase struct {
	name   string
	config lab.Config
	act    func(t *testing.T, l *lab.Lab)
	want   outcome
}

func runCases(t *testing.T, cases []productCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, c.config)
				up(t, l, "eth0")
				if c.act != nil {
					c.act(t, l)
				}
				check(t, l, c.want)
			})
		})
	}
}

func with(c lab.Config, change func(*lab.Config)) lab.Config {
	change(&c)
	return c
}

// mayFail has eth0 up as soon as IPv6 is, as NetworkManager does by default.
var mayFail = profile("ipv4.may-fail=true")

func profile(settings ...string) func(*lab.Config) {
	return func(c *lab.Config) { c.Profiles = []lab.Profile{{ID: "eth0", Settings: settings}} }
}

func withLease(l lab.Lease) func(*lab.Config) {
	return func(c *lab.Config) { c.Lease = &l }
}

var (
	checkedIn = []string{"checked-in"}
	pushedToo = []string{"checked-in", "nameservers-pushed"}
	leftAlone = []string{"checked-in", "nameservers-left"}
)

func TestFirstLease(t *testing.T) {
	t.Parallel()
	runCases(t, []productCase{
		{name: "NetworkManager pushes", want: outcome{once, leaseDNS, checkedIn}},
		{name: "NetworkManager does not push", config: quiet(), want: outcome{once, leaseDNS, pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			l.Cloud.SetName(name, lab.Constant)
			eventually(t, l, "a name resolves", prints(l, lab.Constant, "getent", "ahostsv4", name))
			eventually(t, l, "a search domain serves", prints(l, lab.Constant, "getent", "ahostsv4", "wire"))
		}},
		{
			name: "slow DHCP: up comes before the lease", config: with(with(quiet(), withLease(slow(lab.AzureLease()))), mayFail), want: outcome{once, leaseDNS, pushedToo},
			act: func(t *testing.T, l *lab.Lab) {
				times(t, l, 1, "dhcp4-change", "eth0")
				events, err := l.Guest.Events()
				ok(t, err)
				if got := strings.Join(actions(events, "eth0"), " "); got != "pre-up up dhcp4-change" {
					t.Errorf("events %s: this was to show up without a lease", got)
				}
			},
		},
		{name: "not Azure", config: with(quiet(), func(c *lab.Config) { c.Cmdline = "ro ignition.platform.id=qemu" }), want: outcome{kinds: []string{}}, act: func(t *testing.T, l *lab.Lab) {
			if l.Guest.Exists("/run/nm-azure-dispatch") {
				t.Error("there is a state directory")
			}
		}},
		{name: "Azure by its asset tag", config: with(quiet(), func(c *lab.Config) {
			c.Cmdline, c.AssetTag = "ro", "7783-7084-3265-9085-8269-3286-77"
		}), want: outcome{once, leaseDNS, pushedToo}},
	})
}

func slow(l lab.Lease) lab.Lease {
	l.Delay = 2 * time.Second
	return l
}

func TestOption245Forms(t *testing.T) {
	t.Parallel()
	type want struct{ server, source string }
	constant, ours := want{lab.Constant, "constant"}, want{lab.Constant, "option-245"}
	unusable := []string{"checked-in", "nameservers-pushed", "option-245-unusable"}
	cases := []struct {
		name  string
		lease lab.Lease
		want  want
		kinds []string
	}{
		{"present", lab.AzureLease(), ours, pushedToo},
		{"absent", lab.AzureLease().Without(lab.OptWireServer), constant, unusable},
		{"short", lab.AzureLease().With(lab.OptWireServer, []byte{168, 63}), constant, unusable},
		{"long", lab.AzureLease().With(lab.OptWireServer, []byte("168.63.129.16")), constant, unusable},
		{"empty", lab.AzureLease().With(lab.OptWireServer, nil), constant, unusable},
		{"loopback", lab.AzureLease().WithAddrs(lab.OptWireServer, "127.0.0.1"), constant, unusable},
		{"link-local", lab.AzureLease().WithAddrs(lab.OptWireServer, "169.254.169.254"), constant, unusable},
		{"multicast", lab.AzureLease().WithAddrs(lab.OptWireServer, "224.0.0.1"), constant, unusable},
		{"doubled", lab.AzureLease().With(lab.OptWireServer, []byte{168, 63, 129, 16}, []byte{10, 77, 1, 16}), ours, pushedToo},
		{"another address that answers", lab.AzureLease().WithAddrs(lab.OptWireServer, lab.Other), want{lab.Other, "option-245"}, pushedToo},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, with(quiet(), withLease(c.lease)))
				up(t, l, "eth0")
				check(t, l, outcome{once, leaseDNS, c.kinds})
				if e := find(t, l, "checked-in"); e.Server != c.want.server || e.Source != c.want.source {
					t.Errorf("checked in with %s by %s, want %s by %s", e.Server, e.Source, c.want.server, c.want.source)
				}
			})
		})
	}
}

// The address in option 245 does not answer: Ready is sent to the default address.
func TestOption245Dead(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := startProduct(t, suite, with(quiet(), withLease(lab.AzureLease().WithAddrs(lab.OptWireServer, "10.77.0.250"))))
		up(t, l, "eth0")
		if e := find(t, l, "checked-in"); e.Server != lab.Constant || e.Source != "constant" {
			t.Errorf("checked in with %s by %s", e.Server, e.Source)
		}
		if got := count2(requests(t, l), health); got != 1 {
			t.Errorf("%d Readys", got)
		}
	})
}

func count2(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// Whatever NetworkManager does about resolved, resolved has the lease's servers
// in the end.
func TestDNSModes(t *testing.T) {
	t.Parallel()
	var cases []productCase
	for _, dns := range []string{"systemd-resolved", "none", "default"} {
		for _, to := range []string{"true", "false"} {
			kinds := checkedIn
			if dns != "systemd-resolved" && to == "false" {
				kinds = pushedToo
			}
			cases = append(cases, productCase{
				name: fmt.Sprintf("dns=%s systemd-resolved=%s", dns, to), config: lab.Config{DNS: dns, ToResolved: to}, want: outcome{once, leaseDNS, kinds},
			})
		}
	}
	runCases(t, cases)
}

// Never against the administrator's will.
func TestAdministrator(t *testing.T) {
	t.Parallel()
	global := "[global-dns]\n[global-dns-domain-*]\nservers=10.77.0.1\n"
	runCases(t, []productCase{
		{name: "ignore-auto-dns", config: with(quiet(), profile("ipv4.ignore-auto-dns=true")), want: outcome{once, "", leftAlone}},
		{name: "ipv4.dns", config: with(quiet(), profile("ipv4.dns=10.77.0.99")), want: outcome{once, "", leftAlone}},
		{name: "ipv4.dns puts one of the lease's first", config: with(quiet(), profile("ipv4.dns=10.77.0.1")), want: outcome{once, "10.77.0.1 168.63.129.16", pushedToo}},
		{name: "ipv4.dns alone, NetworkManager pushes", config: with(lab.Config{}, profile("ipv4.dns=10.77.0.1", "ipv4.ignore-auto-dns=true")), want: outcome{once, "10.77.0.1", leftAlone}},
		{name: "global-dns", config: with(quiet(), func(c *lab.Config) { c.NMConf = global }), want: outcome{once, "", leftAlone}},
		{name: "DNS= in resolved.conf", config: with(quiet(), func(c *lab.Config) {
			c.Files = map[string]string{"/etc/systemd/resolved.conf.d/dns.conf": "[Resolve]\nDNS=10.77.0.1\n"}
		}), want: outcome{once, "", leftAlone}},
		{name: "resolvectl by hand", config: quiet(), want: outcome{once, "9.9.9.9", []string{"checked-in", "nameservers-left", "nameservers-pushed"}}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "resolvectl", "dns", "eth0", "9.9.9.9")
			for range 3 {
				event(t, l, "reapply", "eth0")
			}
		}},
		{
			name: "IPv6 servers beside IPv4 ones", config: with(quiet(), profile("ipv6.method=manual", "ipv6.address1=fd77::5/64", "ipv6.dns="+lab.Gateway6)),
			want: outcome{requests: once, dns: leaseDNS + " " + lab.Gateway6}, // the probe may be faster than IPv6's duplicate address detection
		},
		{name: "static profile", config: with(quiet(), profile("ipv4.method=manual", "ipv4.address1=10.77.0.9/24,10.77.0.1", "ipv4.dns=10.77.0.1")), want: outcome{kinds: []string{}}},
		{name: "static profile after DHCP", config: with(quiet(), func(c *lab.Config) {
			c.Profiles = []lab.Profile{{ID: "eth0"}, {ID: "static", Settings: []string{
				"connection.interface-name=eth0", "connection.autoconnect=false", "ipv4.method=manual", "ipv4.address1=10.77.0.9/24,10.77.0.1", "ipv4.dns=10.77.0.1",
			}}}
		}), want: outcome{once, "", []string{"checked-in", "nameservers-pushed", "nameservers-undone"}}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "nmcli", "connection", "up", "static")
			times(t, l, 2, "up", "eth0")
		}},
	})
}

// event hands an event to the program as the dispatcher does, with what the
// environment of an activated device with a lease has.
func event(t *testing.T, l *lab.Lab, action, nic string) {
	t.Helper()
	run(t, l, "env", "-i", "NM_DISPATCHER_ACTION="+action, "DHCP4_IP_ADDRESS=10.77.0.100", lab.ProductBinary, nic, action)
}

// What can happen to a device that is up.
func TestLater(t *testing.T) {
	t.Parallel()
	downUp := []string{"checked-in", "nameservers-pushed", "nameservers-pushed", "nameservers-undone"}
	runCases(t, []productCase{
		{name: "reapply", config: quiet(), want: outcome{once, leaseDNS, pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "nmcli", "device", "reapply", "eth0")
			times(t, l, 1, "reapply", "eth0")
		}},
		{name: "activated again", config: quiet(), want: outcome{requests: once, dns: leaseDNS}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "nmcli", "connection", "up", "eth0")
			times(t, l, 2, "up", "eth0")
		}}, // undone and pushed again, or the device is active again before the down event is there
		{name: "disconnected", config: quiet(), want: outcome{once, "", []string{"checked-in", "nameservers-pushed", "nameservers-undone"}}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "nmcli", "device", "disconnect", "eth0")
			times(t, l, 1, "down", "eth0")
		}},
		{name: "carrier lost and back", config: quiet(), want: outcome{once, leaseDNS, downUp}, act: func(t *testing.T, l *lab.Lab) {
			ok(t, l.SetCarrier(t.Context(), "eth0", false))
			times(t, l, 1, "down", "eth0")
			ok(t, l.SetCarrier(t.Context(), "eth0", true))
			times(t, l, 2, "up", "eth0")
		}},
		{name: "NetworkManager restarted", config: quiet(), want: outcome{once, leaseDNS, pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			ok(t, l.Guest.Restart(t.Context(), lab.NetworkManager))
			times(t, l, 2, "up", "eth0")
		}},
		{name: "resolved restarted", config: quiet(), want: outcome{once, leaseDNS, pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			ok(t, l.Guest.Restart(t.Context(), lab.Resolved))
			event(t, l, "reapply", "eth0")
		}},
		{
			name: "another boot", config: quiet(), want: outcome{append(append([]string{}, once...), once...), leaseDNS, []string{"checked-in", "checked-in", "nameservers-pushed"}},
			act: func(t *testing.T, l *lab.Lab) {
				ok(t, l.Guest.SetBootID("b0070002-0000-4000-8000-000000000002"))
				event(t, l, "up", "eth0")
				event(t, l, "up", "eth0")
			},
		},
		{name: "a late down after a newer up", config: quiet(), want: outcome{once, leaseDNS, pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			event(t, l, "down", "eth0")
		}},
		{name: "the device becomes a port of a bridge", config: quiet(), want: outcome{requests: once, dns: ""}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "nmcli", "connection", "add", "type", "bridge", "ifname", "br1", "con-name", "br1", "ipv4.method", "disabled", "ipv6.method", "disabled")
			run(t, l, "nmcli", "connection", "add", "type", "ethernet", "ifname", "eth0", "con-name", "port", "master", "br1", "slave-type", "bridge")
			run(t, l, "nmcli", "connection", "up", "port")
			times(t, l, 2, "up", "eth0")
		}},
		{name: "the device is pulled", config: quiet(), want: outcome{once, "", pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			ok(t, l.RemoveNIC(t.Context(), "eth0"))
			times(t, l, 1, "down", "eth0")
			if out := run(t, l, "ls", "/run/nm-azure-dispatch/links"); strings.Contains(out, ".json") {
				t.Errorf("records of links: %s", out)
			}
		}},
	})
}

// A change of the search domains reaches resolved. Not on 1.42.4, whose own configuration
// stays as it was after the reapply (seen for 30 s).
func TestDomainsChange(t *testing.T) {
	t.Parallel()
	l := startProduct(t, "trixie", quiet())
	up(t, l, "eth0")
	run(t, l, "nmcli", "connection", "modify", "eth0", "ipv4.dns-search", "new.example")
	run(t, l, "nmcli", "device", "reapply", "eth0")
	times(t, l, 1, "reapply", "eth0")
	eventually(t, l, "the new domain is there", func(ctx context.Context) error {
		event(t, l, "reapply", "eth0") // the event may come before the configuration has changed
		return prints(l, "new.example", "resolvectl", "domain", "eth0")(ctx)
	})
	check(t, l, outcome{requests: once, dns: leaseDNS})
}

// On 1.42.4 the first reapply after a change of ipv6.method empties the link's
// servers, although NetworkManager wants them. Our run configures them again.
func TestReapplyEmptiesLink(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := startProduct(t, suite, lab.Config{})
		up(t, l, "eth0")
		run(t, l, "nmcli", "connection", "modify", "eth0", "ipv6.method", "disabled")
		run(t, l, "nmcli", "device", "reapply", "eth0")
		times(t, l, 1, "reapply", "eth0")
		want := outcome{once, leaseDNS, checkedIn}
		if suite == "bookworm" {
			want.kinds = pushedToo
		}
		check(t, l, want)
	})
}

// Renewals: 1.42.4 says nothing about them, 1.52 sends an event for each.
func TestRenewals(t *testing.T) {
	t.Parallel()
	short := lab.AzureLease().WithTimes(4 * time.Second)
	for name, later := range map[string]struct {
		lease lab.Lease
		dns   string // on 1.52
	}{
		"nothing changed": {short, leaseDNS},
		"changed DNS":     {short.WithAddrs(lab.OptNameservers, lab.Gateway), lab.Gateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, with(quiet(), withLease(short)))
				up(t, l, "eth0")
				l.Cloud.SetLease("", later.lease)
				before := acks(t, l)
				eventually(t, l, "the lease was renewed twice", func(context.Context) error {
					if n := acks(t, l) - before; n < 2 {
						return fmt.Errorf("%d times", n)
					}
					return nil
				})
				want := outcome{once, leaseDNS, pushedToo}
				if suite != "bookworm" {
					times(t, l, 3, "dhcp4-change", "eth0")
					// On a busy machine only the last of these renewals may be of the changed lease, and its event may come first.
					eventually(t, l, "the lease's nameservers", becomes(l, later.dns))
					if want.dns = later.dns; later.dns != leaseDNS {
						want.kinds = []string{"checked-in", "nameservers-pushed", "nameservers-pushed"}
					}
				}
				check(t, l, want)
			})
		})
	}
}

func acks(t *testing.T, l *lab.Lab) (n int) {
	t.Helper()
	log := l.Cloud.DHCPLog()
	for _, m := range log {
		if strings.Contains(fmt.Sprintf("%+v", m), "ACK") {
			n++
		}
	}
	return n
}

func TestResolvedMissing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state   lab.State
		systemd bool
	}{{lab.Absent, false}, {lab.Stopped, false}, {lab.Disabled, true}, {lab.Masked, true}} {
		t.Run(string(tt.state), func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				c := quiet()
				c.Systemd, c.Daemons = tt.systemd, map[lab.Daemon]lab.State{lab.Resolved: tt.state}
				l := startProduct(t, suite, c)
				up(t, l, "eth0")
				event(t, l, "reapply", "eth0") // said once
				check(t, l, outcome{once, "", []string{"checked-in", "resolved-unavailable"}})
			})
		})
	}
}

// Two interfaces, either first: only the primary one's lease starts the check-in,
// and only the one with the default route gets nameservers from us.
func TestBothNICs(t *testing.T) {
	t.Parallel()
	secondary := lab.AzureLease().Without(lab.OptRouter).WithRoutes(map[string]string{"10.78.0.0/16": lab.Gateway})
	for _, late := range []string{"eth0", "eth1"} {
		t.Run(late+" is late", func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				leases := map[string]lab.Lease{"eth0": lab.AzureLease(), "eth1": secondary}
				leases[late] = slow(leases[late])
				c := quiet()
				c.NICs, c.Leases = []string{"eth0", "eth1"}, maps.Clone(leases)
				l := startProduct(t, suite, c)
				up(t, l, "eth0")
				up(t, l, "eth1")
				check(t, l, outcome{once, leaseDNS, pushedToo})
				if got := linkDNS(t, l, "eth1"); got != "" {
					t.Errorf("eth1 has %s", got)
				}
			})
		})
	}
}

// A never-default interface: NetworkManager keeps its servers away, and so do
// we, over ten events.
func TestNeverDefault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]lab.Config{"NetworkManager pushes": {}, "NetworkManager does not push": quiet()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				c.NICs = []string{"eth0", "eth1"}
				c.Profiles = []lab.Profile{{ID: "eth0"}, {ID: "eth1", Settings: []string{"ipv4.never-default=true"}}}
				l := startProduct(t, suite, c)
				up(t, l, "eth0")
				up(t, l, "eth1")
				before := linkDNS(t, l, "eth1")
				for range 10 {
					event(t, l, "reapply", "eth1")
					if got := linkDNS(t, l, "eth1"); got != before {
						t.Fatalf("eth1 had %q, has %q now", before, got)
					}
				}
				for _, e := range entries(t, l) {
					if strings.Contains(e.Message, "eth1") && kindOf(e.ID) != "lock-held" && kindOf(e.ID) != "checked-in" {
						t.Errorf("about eth1: %s", e.Message)
					}
				}
			})
		})
	}
}

// Devices that are not managed by us: a port of a bridge, and a device that another program
// configured.
func TestOthersDevices(t *testing.T) {
	t.Parallel()
	runCases(t, []productCase{
		{name: "port of a bridge", want: outcome{once, leaseDNS, pushedToo}, config: with(quiet(), func(c *lab.Config) {
			c.NICs = []string{"eth0", "eth1"}
			c.Profiles = []lab.Profile{
				{ID: "eth0"},
				{ID: "br1", Settings: []string{"connection.type=bridge", "ipv4.method=disabled", "ipv6.method=disabled"}},
				{ID: "eth1", Settings: []string{"connection.master=br1", "connection.slave-type=bridge"}},
			}
		}), act: func(t *testing.T, l *lab.Lab) { up(t, l, "eth1") }},
		{name: "external", config: quiet(), want: outcome{once, leaseDNS, pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "ip", "link", "add", "ext0", "type", "bridge")
			run(t, l, "ip", "addr", "add", "10.79.0.1/24", "dev", "ext0")
			run(t, l, "ip", "link", "set", "ext0", "up")
			up(t, l, "ext0")
		}},
		{name: "200 veths", config: quiet(), want: outcome{once, leaseDNS, pushedToo}, act: func(t *testing.T, l *lab.Lab) {
			run(t, l, "bash", "-ec", `for i in $(seq 200); do echo "link add v$i type veth peer name w$i"; echo "link set v$i up"; echo "link set w$i up"; done | ip -batch -`)
			// An address that comes while NetworkManager makes the device is not taken up.
			eventually(t, l, "NetworkManager has the last one", prints(l, "v200:", "nmcli", "-t", "-f", "DEVICE,STATE", "device"))
			ok(t, l.Guest.Settle(t.Context()))
			run(t, l, "bash", "-ec", "ip addr add 10.80.0.1/24 dev v7; ip addr add 10.80.1.1/24 dev v8")
			up(t, l, "v7")
			up(t, l, "v8")
		}},
	})
}
