package dispatch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/golden"
)

func addrs(s string) (out []netip.Addr) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParseAddr(f))
	}
	return out
}

func servers(s string) (out []resolv.Server) {
	for _, a := range addrs(s) {
		out = append(out, resolv.Server{Addr: a})
	}
	return out
}

// Action and reason are in the table, the traces in testdata/decide.golden.
func TestDecide(t *testing.T) {
	const (
		lease = "168.63.129.16 10.0.0.1"
		both  = "168.63.129.16 10.0.0.1 2001:db8::1"
	)
	errNoAnswer := errors.New("no answer")
	pushed := func(s string) boot.Link { return boot.Link{State: boot.Pushed, Nameservers: addrs(s)} }
	tests := []struct {
		name                 string
		change               func(*LinkView) // of an activated device with a default route
		lease, desired, have string
		global               string
		rec                  boot.Link
		want                 Action
		reason               Reason
	}{
		{name: "NetworkManager has pushed", lease: lease, desired: lease, have: lease, want: ActNone, reason: UpToDate},
		{name: "resolved has more", lease: lease, desired: lease, have: "9.9.9.9 " + lease, want: ActNone, reason: UpToDate},
		{name: "another order", lease: lease, desired: lease, have: "10.0.0.1 168.63.129.16", want: ActNone, reason: UpToDate},
		{name: "resolved has nothing", lease: lease, desired: lease, want: ActPush, reason: NameserversMissing},
		{name: "both families", lease: lease, desired: both, want: ActPush, reason: NameserversMissing},
		{name: "both families there", lease: lease, desired: both, have: both, want: ActNone, reason: UpToDate},
		{name: "IPv6 came later", lease: lease, desired: both, have: lease, rec: pushed(lease), want: ActPush, reason: DNSChanged},
		{name: "ours, as desired", lease: lease, desired: lease, have: lease, rec: pushed(lease), want: ActNone, reason: UpToDate},
		{name: "ours, the lease has changed", lease: "10.0.0.2", desired: "10.0.0.2", have: lease, rec: pushed(lease), want: ActPush, reason: DNSChanged},
		{name: "ours, a server fewer", lease: "10.0.0.1", desired: "10.0.0.1", have: lease, rec: pushed(lease), want: ActPush, reason: DNSChanged},
		{name: "ours was emptied by NetworkManager", lease: lease, desired: lease, rec: pushed(lease), want: ActPush, reason: NameserversMissing},
		{name: "servers set by hand", lease: lease, desired: lease, have: "9.9.9.9", want: ActLeave, reason: OtherServers},
		{name: "ours replaced by hand", lease: lease, desired: lease, have: "9.9.9.9", rec: pushed(lease), want: ActLeave, reason: OtherServers},
		{name: "ours and one by hand, lease changed", lease: "10.0.0.2", desired: "10.0.0.2", have: lease + " 9.9.9.9", rec: pushed(lease), want: ActLeave, reason: OtherServers},
		{name: "NetworkManager has taken over and pushed a change", lease: "10.0.0.2", desired: "10.0.0.2", have: "10.0.0.2", rec: pushed(lease), want: ActForget, reason: UpToDate},
		{name: "left before, up to date now", lease: lease, desired: lease, have: lease, rec: boot.Link{State: boot.Left, Reason: "x"}, want: ActForget, reason: UpToDate},

		{name: "ignore-auto-dns", lease: lease, want: ActLeave, reason: NoDNSConfig},
		{name: "ignore-auto-dns after a push", lease: lease, have: lease, rec: pushed(lease), want: ActUndo, reason: NoDNSConfig},
		{name: "ipv4.dns", lease: lease, desired: "9.9.9.9", want: ActLeave, reason: DNSDiffers},
		{name: "ipv4.dns beside the lease's", lease: lease, desired: lease + " 9.9.9.9", want: ActLeave, reason: DNSDiffers},
		{name: "ipv4.dns after a push, NetworkManager does not push", lease: lease, desired: "9.9.9.9", have: lease, rec: pushed(lease), want: ActUndo, reason: DNSDiffers},
		{name: "ipv4.dns after a push, NetworkManager pushes", lease: lease, desired: "9.9.9.9", have: "9.9.9.9", rec: pushed(lease), want: ActLeave, reason: DNSDiffers},
		{name: "only IPv6 desired", lease: lease, desired: "2001:db8::1", want: ActLeave, reason: DNSDiffers},
		{name: "global-dns", lease: lease, desired: lease, change: func(v *LinkView) { v.DNS = nm.DNSConfig{Global: true} }, want: ActLeave, reason: GlobalDNS},
		{name: "global-dns after a push", lease: lease, desired: lease, have: lease, change: func(v *LinkView) { v.DNS = nm.DNSConfig{Global: true} }, rec: pushed(lease), want: ActUndo, reason: GlobalDNS},
		{name: "global servers", lease: lease, desired: lease, global: "9.9.9.9", want: ActLeave, reason: GlobalServers},
		{name: "global servers, link up to date", lease: lease, desired: lease, have: lease, global: "9.9.9.9", want: ActNone, reason: UpToDate},
		{name: "global servers, ours is up to date", lease: lease, desired: lease, have: lease, global: "9.9.9.9", rec: pushed(lease), want: ActNone, reason: UpToDate},
		{name: "global servers, ours is out of date", lease: "10.0.0.2", desired: "10.0.0.2", have: lease, global: "9.9.9.9", rec: pushed(lease), want: ActUndo, reason: GlobalServers},

		{name: "static profile", desired: "9.9.9.9", want: ActNone, reason: DNSDiffers},
		{name: "static profile after a push", desired: "9.9.9.9", have: lease, rec: pushed(lease), want: ActUndo, reason: DNSDiffers},
		{name: "static profile with the same servers after a push", desired: lease, have: lease, rec: pushed(lease), want: ActNone, reason: DNSDiffers},
		{name: "lease without servers", want: ActNone, reason: NoLeaseServers},
		{name: "only IPv6 desired, lease without servers", desired: "2001:db8::1", want: ActNone, reason: NoLeaseServers},

		{name: "never-default", lease: lease, desired: lease, change: func(v *LinkView) { v.Primary = false }, want: ActNone, reason: NotDefaultRoute},
		{name: "never-default after a push, nothing desired", lease: lease, have: lease, change: func(v *LinkView) { v.Primary = false }, rec: pushed(lease), want: ActUndo, reason: NoDNSConfig},
		{name: "never-default after a push, others desired", lease: "10.0.0.2", desired: "10.0.0.2", have: lease, change: func(v *LinkView) { v.Primary = false }, rec: pushed(lease), want: ActUndo, reason: NotDefaultRoute},
		{name: "never-default after a push, the same desired", lease: lease, desired: lease, have: lease, change: func(v *LinkView) { v.Primary = false }, rec: pushed(lease), want: ActNone, reason: NotDefaultRoute},
		{name: "never-default after a push that is gone", lease: lease, desired: lease, change: func(v *LinkView) { v.Primary = false }, rec: pushed(lease), want: ActForget, reason: NotDefaultRoute},
		{name: "external", lease: lease, desired: lease, change: func(v *LinkView) { v.External = true }, want: ActNone, reason: External},
		{name: "not activated yet", lease: lease, desired: lease, change: func(v *LinkView) { v.Activated = false }, want: ActNone, reason: NotActivated},
		{name: "not activated any more", have: lease, change: func(v *LinkView) { v.Activated = false }, rec: pushed(lease), want: ActUndo, reason: NotActivated},

		{name: "down", have: lease, change: func(v *LinkView) { v.Down = true }, rec: pushed(lease), want: ActUndo, reason: LinkDown},
		{name: "down with nothing of ours", have: "9.9.9.9", change: func(v *LinkView) { v.Down = true }, want: ActNone, reason: LinkDown},
		{name: "down, changed by hand", have: "9.9.9.9", change: func(v *LinkView) { v.Down = true }, rec: pushed(lease), want: ActForget, reason: LinkDown},
		{name: "down, active again", desired: lease, have: lease, change: func(v *LinkView) { v.Down = true }, rec: pushed(lease), want: ActNone, reason: ActiveAgain},
		{name: "down, NetworkManager waits for us", have: lease, change: func(v *LinkView) { v.Down, v.Primary, v.DNSErr = true, false, errNoAnswer }, rec: pushed(lease), want: ActUndo, reason: LinkDown},
		{name: "down, NetworkManager is busy and the device active", have: lease, change: func(v *LinkView) { v.Down, v.DNSErr = true, errNoAnswer }, rec: pushed(lease), want: ActNone, reason: NetworkManagerFailed},

		{name: "NetworkManager does not answer", lease: lease, have: lease, change: func(v *LinkView) { v.DNSErr = errNoAnswer }, rec: pushed(lease), want: ActNone, reason: NetworkManagerFailed},
		{name: "resolved does not answer", lease: lease, desired: lease, change: func(v *LinkView) { v.HaveErr = errNoAnswer }, rec: pushed(lease), want: ActNone, reason: ResolvedFailed},
		{name: "resolved is not available", lease: lease, desired: lease, change: func(v *LinkView) { v.HaveErr = resolv.ErrNotRunning }, want: ActLeave, reason: ResolvedUnavailable},
		{name: "resolved is not available, ours on the link", lease: lease, desired: lease, change: func(v *LinkView) { v.HaveErr = resolv.ErrNotRunning }, rec: pushed(lease), want: ActNone, reason: ResolvedUnavailable},
		{name: "networkd manages the link", lease: lease, desired: lease, change: func(v *LinkView) { v.HaveErr = resolv.ErrLinkBusy }, want: ActLeave, reason: ManagedByNetworkd},
	}
	var traces strings.Builder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := LinkView{
				Primary: true, Activated: true, Lease: addrs(tt.lease), DNS: nm.DNSConfig{Nameservers: addrs(tt.desired)},
				Have: resolv.State{Nameservers: servers(tt.have), Global: servers(tt.global)}, Record: tt.rec,
			}
			if tt.change != nil {
				tt.change(&v)
			}
			fmt.Fprintf(&traces, "%s\n\t%s\n", tt.name, v.Trace())
			p := Decide(v)
			if p.Action != tt.want || p.Reason != tt.reason {
				t.Errorf("got %s, %s; want %s, %s", p.Action, p.Reason.Code, tt.want, tt.reason.Code)
			}
			if want := v.DNS.Nameservers; p.Action == ActPush && !slices.Equal(p.Nameservers, want) {
				t.Errorf("pushes %v, want %v", p.Nameservers, want)
			}
		})
	}
	golden.Check(t, "testdata/decide.golden", traces.String())
}

// A server with a port or a name is not the plain one that we push, nor is DNS
// over TLS in the profile the lease's server.
func TestDecideNotPlain(t *testing.T) {
	v := LinkView{
		Primary: true, Activated: true, Lease: addrs("10.0.0.1"), DNS: nm.DNSConfig{Nameservers: addrs("10.0.0.1")},
		Have:   resolv.State{Nameservers: []resolv.Server{{Addr: addrs("10.0.0.1")[0], Name: "dns.example"}}},
		Record: boot.Link{State: boot.Pushed, Nameservers: addrs("10.0.0.1")},
	}
	if p := Decide(v); p.Action != ActLeave || p.Reason != OtherServers {
		t.Errorf("got %v, %q; want to leave it", p.Action, p.Reason.Code)
	}
	v.DNS.Other, v.Have = []string{"dns+tls://1.1.1.1"}, resolv.State{}
	if p := Decide(v); p.Action != ActLeave || p.Reason != DNSDiffers {
		t.Errorf("got %v, %q; want to leave it", p.Action, p.Reason.Code)
	}
}

func TestDomainsFor(t *testing.T) {
	have := func(names ...string) (out []resolv.Domain) {
		for _, n := range names {
			out = append(out, resolv.Domain{Name: n})
		}
		return out
	}
	ours := boot.Link{State: boot.Pushed, Domains: []string{"a.example"}}
	tests := []struct {
		name    string
		desired []string
		have    []resolv.Domain
		rec     boot.Link
		want    []string
		set     bool
	}{
		{name: "none anywhere"},
		{name: "the link has none", desired: []string{"a.example"}, want: []string{"a.example"}, set: true},
		{name: "the link has them", desired: []string{"a.example"}, have: have("a.example")},
		{name: "the link has others", desired: []string{"a.example"}, have: have("b.example")},
		{name: "ours, unchanged", desired: []string{"a.example"}, have: have("a.example"), rec: ours, want: []string{"a.example"}},
		{name: "ours, changed", desired: []string{"c.example"}, have: have("a.example"), rec: ours, want: []string{"c.example"}, set: true},
		{name: "ours, no longer desired", have: have("a.example"), rec: ours, set: true},
		{name: "ours in another case", desired: []string{"A.example"}, have: have("a.Example"), rec: ours, want: []string{"A.example"}},
		{name: "a routing domain is not ours", desired: []string{"a.example"}, have: []resolv.Domain{{Name: "a.example", RouteOnly: true}}, rec: ours},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decision{LinkView: LinkView{Have: resolv.State{Domains: tt.have}, Record: tt.rec}, want: nm.DNSConfig{Domains: tt.desired}}
			got, set := d.domains()
			if diff := cmp.Diff(tt.want, got); diff != "" || set != tt.set {
				t.Errorf("set %v, want %v; domains (-want +got):\n%s", set, tt.set, diff)
			}
		})
	}
}

func TestUsable(t *testing.T) {
	own := addrs("10.0.0.4 2001:db8::4")
	tests := []struct{ name, in, want string }{
		{name: "in order", in: "10.0.0.2 10.0.0.1", want: "10.0.0.2 10.0.0.1"},
		{name: "repeats", in: "10.0.0.2 10.0.0.1 10.0.0.2", want: "10.0.0.2 10.0.0.1"},
		{name: "nobody can be asked there", in: "0.0.0.0 127.0.0.53 127.1.2.3 224.0.0.251 255.255.255.255 :: ::1 ff02::fb"},
		{name: "the machine itself", in: "10.0.0.4 10.0.0.1 2001:db8::4", want: "10.0.0.1"},
		{name: "link-local is fine", in: "169.254.1.1 fe80::1", want: "169.254.1.1 fe80::1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(addrs(tt.want), usable(addrs(tt.in), own), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
		})
	}
}

// A search domain that begins with a tilde only routes queries.
func TestDecideUsable(t *testing.T) {
	p := Decide(LinkView{
		Primary: true, Activated: true, Lease: addrs("10.0.0.1 127.0.0.1"), Own: addrs("10.0.0.4"),
		DNS: nm.DNSConfig{Nameservers: addrs("127.0.0.1 10.0.0.1 10.0.0.4"), Domains: []string{"~.", "a.example", "~b.example"}},
	})
	want := Plan{Action: ActPush, Nameservers: addrs("10.0.0.1"), Domains: []string{"a.example"}, SetDomains: true, Reason: NameserversMissing}
	if diff := cmp.Diff(want, p, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// Only an entry that is missing by a fault is replaced by IP4Config: not one that a setting has removed.
func TestEntryLost(t *testing.T) {
	entry := func(iface string, priority int32) []map[string]any {
		return []map[string]any{{"interface": iface, "nameservers": []string{"10.0.0.2"}, "priority": priority}}
	}
	ip4, own := nm.DNSConfig{Nameservers: addrs("10.0.0.1")}, nm.DNSConfig{Nameservers: addrs("10.0.0.2")}
	tests := []struct {
		name                  string
		pushed, reapplied, up bool
		global                bool
		configuration         []map[string]any
		want                  nm.DNSConfig
	}{
		{name: "after a push", up: true, pushed: true, want: ip4},
		{name: "after a reapply", up: true, reapplied: true, want: ip4},
		{name: "neither", up: true},
		{name: "not activated", pushed: true, reapplied: true},
		{name: "global-dns", up: true, pushed: true, reapplied: true, global: true, want: nm.DNSConfig{Global: true}},
		{name: "another link has one", up: true, pushed: true, configuration: entry("eth1", 50), want: ip4},
		{name: "another link excludes it", up: true, pushed: true, reapplied: true, configuration: entry("eth1", -50), want: nm.DNSConfig{Excluded: true}},
		{name: "there is one", up: true, pushed: true, reapplied: true, configuration: entry("eth0", 50), want: own},
	}
	for _, tt := range tests {
		var v LinkView
		d := nm.Device{Interface: "eth0", IP4DNS: ip4}
		if tt.up {
			d.State = nm.StateActivated
		}
		if tt.pushed {
			v.Record.State = boot.Pushed
		}
		v.Add(nm.Snapshot{Devices: []nm.Device{d}, Configuration: tt.configuration, GlobalDNS: tt.global}, nil, "eth0", tt.reapplied)
		if diff := cmp.Diff(tt.want, v.DNS, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
