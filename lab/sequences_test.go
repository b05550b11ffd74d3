package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// A sequence is what happens to a guest's nameservers, one thing after the other, and what has to be after all of it and one
// run of the unit. TestAnyOrder of internal/dispatch draws such sequences against a model; these run on the real daemons. None has
// a NIC in a VRF, which kernels for tests do not have: the tests of internal/link and of the gate have one.
type sequence struct {
	name    string
	early   func(*testing.T, *lab.Lab) // before NetworkManager starts
	happens func(*testing.T, *lab.Lab)

	servers, domains string // of eth0 in the end
	fails            string // the step of doctor that fails first, and its code; empty: none
}

// doThen runs one after the other.
func doThen(all ...func(*testing.T, *lab.Lab)) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		for _, f := range all {
			f(t, l)
		}
	}
}

// nm runs nmcli and waits until the events of it are over.
func nm(command string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		run(t, l, "nmcli", strings.Fields(command)...)
		ok(t, l.Guest.Settle(t.Context()))
	}
}

// setting changes eth0's profile and reapplies it.
func setting(settings string) func(*testing.T, *lab.Lab) {
	return doThen(sh("nmcli connection modify eth0 "+settings), nm("device reapply eth0"))
}

// leaseOf has the DHCP server offer these nameservers from now on.
func leaseOf(servers ...string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		l.Cloud.SetLease("", lab.AzureLease().WithAddrs(lab.OptNameservers, servers...))
	}
}

// becomes reports whether resolved has these servers for eth0, none for "".
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

// then waits until resolved has these servers for eth0, without an event of ours.
func then(servers string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		eventually(t, l, "eth0 has "+servers, becomes(l, servers))
	}
}

// thenEvent is then with events: the one of a change can come before NetworkManager's configuration has changed.
func thenEvent(servers string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		eventually(t, l, "eth0 has "+servers, func(ctx context.Context) error {
			event(t, l, "reapply", "eth0")
			return becomes(l, servers)(ctx)
		})
	}
}

// thenDomains demands these search domains of eth0.
func thenDomains(want string) func(*testing.T, *lab.Lab) {
	return func(t *testing.T, l *lab.Lab) {
		t.Helper()
		if got := linkDomains(t, l); got != want {
			t.Errorf("domains %q, want %q", got, want)
		}
	}
}

func linkDomains(t *testing.T, l *lab.Lab) string {
	t.Helper()
	_, domains, _ := strings.Cut(run(t, l, "resolvectl", "domain", "eth0"), "):")
	return strings.TrimSpace(domains)
}

const (
	denyPath   = "/etc/dbus-1/system.d/90-deny.conf"
	denySetDNS = `<busconfig><policy context="mandatory">` +
		`<deny send_interface="org.freedesktop.resolve1.Manager" send_member="SetLinkDNS"/></policy></busconfig>`
	reloadBus = "busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig"

	// killingGate kills each hook within 250 ms of its start. slowResolved makes most of that the time between two calls of a push.
	killingGate = "#!/bin/bash\nprintf -v after 0.%03d $((RANDOM % 245 + 5))\n" +
		"timeout --foreground -s KILL $after " + lab.ProductBinary + ` "$@"; echo $? >>/run/killed` + "\n"
	slowResolved = `touch /run/slow; p=$(systemctl show --value -p MainPID systemd-resolved)
		while [ -e /run/slow ]; do kill -STOP $p; sleep 0.03; kill -CONT $p; sleep 0.003; done </dev/null >/dev/null 2>&1 &`

	nmConf = "/etc/NetworkManager/conf.d/90-dns.conf"
	static = "ipv4.method manual ipv4.addresses 10.77.0.100/24 ipv4.gateway " + lab.Gateway
	dhcp   = "ipv4.method auto ipv4.addresses '' ipv4.gateway '' ipv4.dns ''"
)

var sequences = []sequence{
	{
		name: "never-default for a while, another lease, ignore-auto-dns, disconnected",
		happens: doThen(
			setting("ipv4.never-default yes"), setting("ipv4.never-default no"),
			leaseOf(lab.Gateway), nm("connection up eth0"), then(lab.Gateway),
			setting("ipv4.never-default yes"), setting("ipv4.ignore-auto-dns yes"), nm("device disconnect eth0"),
		),
		fails: "device device-disconnected",
	},
	{
		name: "a static profile with the same DNS, then with another, and back to DHCP",
		happens: doThen(
			setting(static+" ipv4.dns 168.63.129.16,10.77.0.1"),
			setting("ipv4.dns 10.77.0.99"), thenEvent(""),
			sh("nmcli connection modify eth0 "+dhcp), nm("connection up eth0"),
		),
		servers: leaseDNS, domains: leaseDomain,
	},
	{
		name: "resolved away while another lease comes",
		happens: doThen(
			sh("systemctl mask --runtime --now systemd-resolved.service 2>&1"), leaseOf(lab.Gateway), nm("connection up eth0"),
			sh("systemctl unmask --runtime systemd-resolved.service 2>&1", "systemctl start systemd-resolved.service"), then(lab.Gateway),
		),
		servers: lab.Gateway, domains: leaseDomain,
	},
	{
		name:  "resolved answers six seconds after the lease",
		early: signal(lab.Resolved, unix.SIGSTOP),
		happens: func(t *testing.T, l *lab.Lab) {
			time.Sleep(6 * time.Second)
			signal(lab.Resolved, unix.SIGCONT)(t, l)
			then(leaseDNS)(t, l)
		},
		servers: leaseDNS, domains: leaseDomain,
	},
	{
		name: "global-dns comes",
		happens: doThen(
			sh(`printf '[global-dns-domain-*]\nservers=203.0.113.1\n' >`+nmConf), nm("general reload"), nm("device reapply eth0"), thenEvent(""),
		),
		fails: "link-dns global-dns",
	},
	{
		name: "domains that differ in case, disconnected and connected",
		happens: doThen(
			sh("nmcli connection modify eth0 ipv4.dns-search corp.example,Corp.Example"),
			nm("connection up eth0"), then(leaseDNS), thenDomains("corp.example"),
			nm("device disconnect eth0"), then(""), thenDomains(""),
			nm("connection up eth0"),
		),
		servers: leaseDNS, domains: "corp.example",
	},
	{
		name: "the bus refuses the push for a while",
		early: func(t *testing.T, l *lab.Lab) {
			ok(t, l.Guest.WriteFile(denyPath, denySetDNS, 0o644))
			sh(reloadBus)(t, l)
			dnsFault(lab.DNSSilent)(t, l)
		},
		happens: func(t *testing.T, l *lab.Lab) {
			logged(t, l, "handed-over")
			for _, kind := range []string{"nameservers-pushed", "nameserver-silent"} {
				if slices.Contains(kinds(t, l), kind) {
					t.Errorf("the journal has %s, and nothing was pushed", kind)
				}
			}
			dnsFault(lab.DNSHealthy)(t, l)
			sh("rm "+denyPath, reloadBus)(t, l)
			then(leaseDNS)(t, l)
		},
		servers: leaseDNS, domains: leaseDomain,
	},
	{
		name: "a NIC plugged and removed twelve times",
		happens: func(t *testing.T, l *lab.Lab) {
			for n := range 12 {
				ok(t, l.AddNIC(t.Context(), "eth1"))
				times(t, l, n+1, "up", "eth1")
				ok(t, l.RemoveNIC(t.Context(), "eth1"))
				times(t, l, n+1, "down", "eth1")
			}
		},
		servers: leaseDNS, domains: leaseDomain,
	},
	{
		name: "up and down faster than the hook, and hooks of every kind at once",
		happens: doThen(
			sh("for i in 1 2 3 4; do nmcli -w 0 connection down eth0; nmcli -w 0 connection up eth0; done",
				`for i in 1 2 3 4 5; do for a in dhcp4-change up reapply down; do
					env -i NM_DISPATCHER_ACTION=$a DHCP4_IP_ADDRESS=10.77.0.100 `+lab.ProductBinary+` eth0 $a &
				done; done; nmcli -w 0 device disconnect eth0; wait`),
			leaseOf(lab.Gateway), nm("connection up eth0"),
		),
		servers: lab.Gateway, domains: leaseDomain,
	},
	{
		name: "every hook is killed midway",
		happens: doThen(
			func(t *testing.T, l *lab.Lab) {
				gate, err := l.Guest.ReadFile(gatePath)
				ok(t, err)
				ok(t, l.Guest.WriteFile(gatePath, killingGate, 0o755))
				sh(slowResolved)(t, l)
				for _, servers := range [][]string{{lab.Gateway}, {"10.77.0.99"}, {lab.Constant}, {lab.Gateway, lab.Constant}} {
					leaseOf(servers...)(t, l)
					doThen(nm("device disconnect eth0"), nm("connection up eth0"), nm("device reapply eth0"))(t, l)
				}
				ok(t, l.Guest.WriteFile(gatePath, gate, 0o755))
			},
			sh("rm /run/slow", "grep -q 137 /run/killed"),
		),
		servers: lab.Gateway + " " + lab.Constant, domains: leaseDomain,
	},
	{
		name: "other hands on the link",
		happens: doThen(
			sh("resolvectl dns eth0 9.9.9.9"), setting("ipv4.route-metric 90"), nm("connection up eth0"),
			nm("device disconnect eth0"), then("9.9.9.9"),
			nm("connection up eth0"), sh("resolvectl revert eth0"), setting("ipv4.route-metric 100"), then(leaseDNS), thenDomains(leaseDomain),
			sh("resolvectl domain eth0 hand.example"), nm("device disconnect eth0"), then(""), thenDomains("hand.example"),
			nm("connection up eth0"),
		),
		servers: leaseDNS, domains: "hand.example",
	},
}

func TestSequences(t *testing.T) {
	t.Parallel()
	for _, s := range sequences {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			onEverySuite(t, func(t *testing.T, suite string) {
				c := quiet()
				c.Systemd, c.Daemons = true, map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
				c.Profiles = []lab.Profile{{ID: "eth0"}, {ID: "eth1"}}
				l := startProduct(t, suite, c)
				sh("ip link add their0 type veth peer name their1", "ip addr add 10.9.9.1/24 dev their0", "ip link set their0 up",
					"ip link set their1 up", "resolvectl dns their0 10.9.9.9", "resolvectl domain their0 '~their.example'",
					"busctl monitor --json=short --match type=method_call,destination=org.freedesktop.resolve1 "+
						"--match type=method_call,destination=org.freedesktop.NetworkManager </dev/null >/run/calls 2>/run/calls.err &")(t, l)
				theirs := linkConfig(t, l, "their0")
				if s.early != nil {
					s.early(t, l)
				}
				ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
				up(t, l, "eth0")
				if s.early == nil {
					then(leaseDNS)(t, l)
				}
				s.happens(t, l)
				s.check(t, l)
				if now := linkConfig(t, l, "their0"); now != theirs {
					t.Errorf("another program's link was\n%s\nand is\n%s", theirs, now)
				}
				if t.Failed() {
					t.Log(l.Dump(t.Context()))
				}
			})
		})
	}
}

// linkConfig is the configuration that resolved has of a link.
func linkConfig(t *testing.T, l *lab.Lab, nic string) string {
	t.Helper()
	return run(t, l, "sh", "-c", `for p in dns domain default-route llmnr mdns dnssec dnsovertls nta; do resolvectl $p "$1"; done`, "-", nic)
}

// check looks at the guest after one run of the unit.
func (s sequence) check(t *testing.T, l *lab.Lab) {
	t.Helper()
	ok(t, l.Guest.Settle(t.Context()))
	run(t, l, lab.ProductBinary, "check-in")
	if got := linkDNS(t, l, "eth0"); got != s.servers {
		t.Errorf("nameservers %q, want %q", got, s.servers)
	}
	thenDomains(s.domains)(t, l)
	if got := requests(t, l); readys(got) != 1 {
		t.Errorf("requests %v, want one Ready", got)
	}
	noLeftovers(t, l)
	links := strings.Fields(run(t, l, "sh", "-c", "cat /sys/class/net/*/ifindex"))
	for _, file := range strings.Fields(run(t, l, "ls", "-A", stateDir+"/links")) {
		if index, _, _ := strings.Cut(file, "."); !slices.Contains(links, index) {
			t.Errorf("left of a link that is gone: %s", file)
		}
	}
	if r, _ := examine(t, l); failure(r) != s.fails {
		t.Errorf("doctor: %q fails first, want %q:\n%s", failure(r), s.fails, notOK(r))
	}
	checkCalls(t, l)
}

// call is a method call on the bus, as busctl has it.
type call struct{ Sender, Destination, Member string }

// ourCalls are all that the program calls of NetworkManager and of resolved.
var ourCalls = []string{
	"FlushCaches", "Get", "GetAll", "GetManagedObjects", "GetSettings", "ResolveHostname",
	"SetLinkDNS", "SetLinkDomains",
}

// checkCalls checks that nothing but the servers and domains was changed over the bus: of those who call both daemons,
// which neither nmcli nor resolvectl does.
func checkCalls(t *testing.T, l *lab.Lab) {
	t.Helper()
	members := map[string][]string{}
	both := map[string][]string{}
	for line := range strings.Lines(run(t, l, "cat", "/run/calls")) {
		var c call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			continue // a line that is not finished
		}
		members[c.Sender] = append(members[c.Sender], c.Member)
		if c.Destination != "" && !slices.Contains(both[c.Sender], c.Destination) {
			both[c.Sender] = append(both[c.Sender], c.Destination)
		}
	}
	var ours []string
	for sender, called := range both {
		if len(called) > 1 {
			ours = append(ours, members[sender]...)
		}
	}
	slices.Sort(ours)
	ours = slices.Compact(ours)
	if !slices.Contains(ours, "SetLinkDNS") {
		t.Errorf("the calls are not ours: %v", ours)
	}
	if diff := cmp.Diff(ourCalls, ours); slices.ContainsFunc(ours, func(m string) bool { return !slices.Contains(ourCalls, m) }) {
		t.Errorf("calls (-may +did):\n%s", diff)
	}
}
