package dispatch

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
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

func TestDecide(t *testing.T) {
	const (
		lease = "168.63.129.16 10.0.0.1"
		both  = "168.63.129.16 10.0.0.1 2001:db8::1"
	)
	pushed := func(s string) boot.Link { return boot.Link{State: boot.Pushed, Nameservers: addrs(s)} }
	tests := []struct {
		name              string
		secondary         bool
		lease, wish, have string
		global            string
		other             []string
		rec               boot.Link
		want              step
		reason            string
	}{
		{name: "NetworkManager has pushed", lease: lease, wish: lease, have: lease, want: keep},
		{name: "resolved has more", lease: lease, wish: lease, have: "9.9.9.9 " + lease, want: keep},
		{name: "another order", lease: lease, wish: lease, have: "10.0.0.1 168.63.129.16", want: keep},
		{name: "resolved has nothing", lease: lease, wish: lease, want: push},
		{name: "both families", lease: lease, wish: both, want: push},
		{name: "both families there", lease: lease, wish: both, have: both, want: keep},
		{name: "IPv6 came later", lease: lease, wish: both, have: lease, rec: pushed(lease), want: push},
		{name: "ours, as wished", lease: lease, wish: lease, have: lease, rec: pushed(lease), want: keep},
		{name: "ours, the lease has changed", lease: "10.0.0.2", wish: "10.0.0.2", have: lease, rec: pushed(lease), want: push},
		{name: "ours, a server fewer", lease: "10.0.0.1", wish: "10.0.0.1", have: lease, rec: pushed(lease), want: push},
		{name: "ours was emptied by NetworkManager", lease: lease, wish: lease, rec: pushed(lease), want: push},
		{name: "servers set by hand", lease: lease, wish: lease, have: "9.9.9.9", want: leave, reason: reasonForeign},
		{name: "ours replaced by hand", lease: lease, wish: lease, have: "9.9.9.9", rec: pushed(lease), want: leave, reason: reasonForeign},
		{name: "ours and one by hand, lease changed", lease: "10.0.0.2", wish: "10.0.0.2", have: lease + " 9.9.9.9", rec: pushed(lease), want: leave, reason: reasonForeign},

		{name: "ignore-auto-dns", lease: lease, want: leave, reason: reasonNoWish},
		{name: "ignore-auto-dns after a push", lease: lease, have: lease, rec: pushed(lease), want: undo, reason: reasonNoWish},
		{name: "ipv4.dns", lease: lease, wish: "9.9.9.9", want: leave, reason: reasonOverride},
		{name: "ipv4.dns beside the lease's", lease: lease, wish: lease + " 9.9.9.9", want: leave, reason: reasonOverride},
		{name: "ipv4.dns after a push, NetworkManager does not push", lease: lease, wish: "9.9.9.9", have: lease, rec: pushed(lease), want: undo, reason: reasonOverride},
		{name: "ipv4.dns after a push, NetworkManager pushes", lease: lease, wish: "9.9.9.9", have: "9.9.9.9", rec: pushed(lease), want: forget},
		{name: "DNS over TLS", lease: lease, wish: lease, other: []string{"dns+tls://1.1.1.1"}, want: leave, reason: reasonOverride},
		{name: "only IPv6 wished", lease: lease, wish: "2001:db8::1", want: leave, reason: reasonOverride},
		{name: "global servers", lease: lease, wish: lease, global: "9.9.9.9", want: leave, reason: reasonGlobal},
		{name: "global servers, link in order", lease: lease, wish: lease, have: lease, global: "9.9.9.9", want: keep},
		{name: "global servers, ours from before", lease: "10.0.0.2", wish: "10.0.0.2", have: lease, global: "9.9.9.9", rec: pushed(lease), want: leave, reason: reasonGlobal},

		{name: "static profile", wish: "9.9.9.9", want: keep},
		{name: "static profile after a push", wish: "9.9.9.9", have: lease, rec: pushed(lease), want: undo, reason: reasonOverride},
		{name: "static profile with the same servers after a push", wish: lease, have: lease, rec: pushed(lease), want: forget},
		{name: "lease without servers", lease: "", wish: "", want: keep},

		{name: "never-default", secondary: true, lease: lease, wish: lease, want: keep},
		{name: "never-default after a push", secondary: true, lease: lease, wish: "", have: lease, rec: pushed(lease), want: undo},
		{name: "never-default after a push, NetworkManager still wishes the same", secondary: true, lease: lease, wish: lease, have: lease, rec: pushed(lease), want: forget},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, reason := decide(linkView{
				primary: !tt.secondary, lease: addrs(tt.lease), wish: nm.DNSConfig{Nameservers: addrs(tt.wish), Other: tt.other},
				have: resolv.State{Nameservers: servers(tt.have), Global: servers(tt.global)}, rec: tt.rec,
			})
			if got != tt.want || reason != tt.reason {
				t.Errorf("got %v, %q; want %v, %q", got, reason, tt.want, tt.reason)
			}
		})
	}
}

// A server with a port or a name is not the plain one that we push.
func TestDecideNotPlain(t *testing.T) {
	v := linkView{
		primary: true, lease: addrs("10.0.0.1"), wish: nm.DNSConfig{Nameservers: addrs("10.0.0.1")},
		have: resolv.State{Nameservers: []resolv.Server{{Addr: addrs("10.0.0.1")[0], Name: "dns.example"}}},
		rec:  boot.Link{State: boot.Pushed, Nameservers: addrs("10.0.0.1")},
	}
	if got, reason := decide(v); got != leave || reason != reasonForeign {
		t.Errorf("got %v, %q; want to leave it", got, reason)
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
		name string
		wish []string
		have []resolv.Domain
		rec  boot.Link
		want []string
		set  bool
	}{
		{name: "none anywhere"},
		{name: "the link has none", wish: []string{"a.example"}, want: []string{"a.example"}, set: true},
		{name: "the link has the wish", wish: []string{"a.example"}, have: have("a.example")},
		{name: "the link has others", wish: []string{"a.example"}, have: have("b.example")},
		{name: "ours, unchanged", wish: []string{"a.example"}, have: have("a.example"), rec: ours, want: []string{"a.example"}},
		{name: "ours, changed", wish: []string{"c.example"}, have: have("a.example"), rec: ours, want: []string{"c.example"}, set: true},
		{name: "ours, no longer wished", have: have("a.example"), rec: ours, set: true},
		{name: "a routing domain is not ours", wish: []string{"a.example"}, have: []resolv.Domain{{Name: "a.example", RouteOnly: true}}, rec: ours},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, set := domainsFor(linkView{wish: nm.DNSConfig{Domains: tt.wish}, have: resolv.State{Domains: tt.have}, rec: tt.rec})
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
	w := usableWish(nm.DNSConfig{Nameservers: addrs("127.0.0.1 10.0.0.1"), Domains: []string{"~.", "a.example", "~b.example"}}, own)
	want := nm.DNSConfig{Nameservers: addrs("10.0.0.1"), Domains: []string{"a.example"}}
	if diff := cmp.Diff(want, w, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("wish (-want +got):\n%s", diff)
	}
}
