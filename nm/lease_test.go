package nm_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

var compare = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmp.Comparer(func(a, b error) bool { return errText(a) == errText(b) }),
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreUnexported(nm.Device{}),
}

func addrs(s string) (out []netip.Addr) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParseAddr(f))
	}
	return out
}

func TestParseLease(t *testing.T) {
	prefixes := func(s string) (out []netip.Prefix) {
		for f := range strings.FieldsSeq(s) {
			out = append(out, netip.MustParsePrefix(f))
		}
		return out
	}
	tests := []struct {
		name    string
		options map[string]any
		want    nm.Lease
		primary bool
	}{
		{name: "empty", options: map[string]any{}},
		{
			name: "Azure, internal client",
			options: map[string]any{
				"ip_address": "10.0.0.4", "routers": "10.0.0.1", "domain_name_servers": "168.63.129.16",
				"domain_name": "x.internal.cloudapp.net", "private_245": "a8:3f:81:10",
				"rfc3442_classless_static_routes": "0.0.0.0/0 10.0.0.1 168.63.129.16/32 10.0.0.1 169.254.169.254/32 10.0.0.1",
				"dhcp_lease_time":                 "4294967295", "requested_routers": "1",
			},
			want: nm.Lease{
				Address: netip.MustParseAddr("10.0.0.4"), Routers: addrs("10.0.0.1"), Nameservers: addrs("168.63.129.16"),
				Domains: []string{"x.internal.cloudapp.net"}, WireServer: netip.MustParseAddr("168.63.129.16"),
				Routes: prefixes("0.0.0.0/0 168.63.129.16/32 169.254.169.254/32"),
			},
			primary: true,
		},
		{
			name: "dhclient",
			options: map[string]any{
				"domain_search": "a.example. b.example.", "domain_name": "c.example", "unknown_245": "a8:3f:81:10", "private_245": "a8:3f:81:10",
				"rfc3442_classless_static_routes": "0 10 77 0 1 32 168 63 129 16 10 77 0 1 24 10 1 2 10 77 0 1 20 172 16 16 10 77 0 1",
			},
			want: nm.Lease{
				Domains: []string{"a.example", "b.example"}, WireServer: netip.MustParseAddr("168.63.129.16"),
				Routes: prefixes("0.0.0.0/0 168.63.129.16/32 10.1.2.0/24 172.16.16.0/20"),
			},
			primary: true,
		},
		{
			name: "dhcpcd",
			options: map[string]any{
				"azureendpoint": "168.63.129.16", "classless_static_routes": "169.254.169.254/32 10.0.0.1",
			},
			want:    nm.Lease{WireServer: netip.MustParseAddr("168.63.129.16"), Routes: prefixes("169.254.169.254/32")},
			primary: true,
		},
		{
			name:    "option 249 only",
			options: map[string]any{"ms_classless_static_routes": "168.63.129.16/32 10.0.0.1"},
			want:    nm.Lease{Routes: prefixes("168.63.129.16/32")}, primary: true,
		},
		{
			name:    "secondary interface",
			options: map[string]any{"ip_address": "10.1.0.4", "rfc3442_classless_static_routes": "10.1.0.0/16 10.1.0.1"},
			want:    nm.Lease{Address: netip.MustParseAddr("10.1.0.4"), Routes: prefixes("10.1.0.0/16")},
		},
		{
			name:    "no classless routes, but a router",
			options: map[string]any{"routers": "10.0.0.1"},
			want:    nm.Lease{Routers: addrs("10.0.0.1")}, primary: true,
		},
		{
			name:    "what is no address is left out, order and repeats stay",
			options: map[string]any{"domain_name_servers": "10.0.0.2 bogus ::1 0.0.0.0 10.0.0.2 127.0.0.1"},
			want:    nm.Lease{Nameservers: addrs("10.0.0.2 0.0.0.0 10.0.0.2 127.0.0.1")},
		},
		{
			name:    "route with an absurd length",
			options: map[string]any{"rfc3442_classless_static_routes": "32 168 63 129 16 10 0 0 1 33 1 2 3 4 5 10 0 0 1", "ms_classless_static_routes": "0.0.0.0/0"},
			want:    nm.Lease{Routes: prefixes("168.63.129.16/32")}, primary: true,
		},
		{
			name:    "route cut short",
			options: map[string]any{"rfc3442_classless_static_routes": "0 10 0 0 1 32 168 63 129 16 10 0 0"},
			want:    nm.Lease{Routes: prefixes("0.0.0.0/0")}, primary: true,
		},
		{
			name:    "values of other types",
			options: map[string]any{"routers": 7, "private_245": []byte{1, 2, 3, 4}, "domain_name": nil},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := nm.ParseLease(tt.options)
			if diff := cmp.Diff(tt.want, got, compare); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
			if got.Primary() != tt.primary {
				t.Errorf("Primary() = %v, want %v", got.Primary(), tt.primary)
			}
		})
	}
}

func TestOption245(t *testing.T) {
	tests := []struct {
		name    string
		options map[string]any
		want    string
		err     string
	}{
		{name: "absent", options: map[string]any{}},
		{name: "two-digit hex", options: map[string]any{"private_245": "a8:3f:81:10"}, want: "168.63.129.16"},
		{name: "hex without leading zeros", options: map[string]any{"unknown_245": "a:0:0:4"}, want: "10.0.0.4"},
		{name: "bare hex", options: map[string]any{"unknown_245": "a83f8110"}, want: "168.63.129.16"},
		{name: "dotted", options: map[string]any{"azureendpoint": "100.115.176.3"}, want: "100.115.176.3"},
		{name: "dotted as text", options: map[string]any{"unknown_245": "168.63.129.16"}, want: "168.63.129.16"},
		{name: "four raw characters", options: map[string]any{"unknown_245": "bL6 "}, want: "98.76.54.32"},
		{name: "a colon among them", options: map[string]any{"unknown_245": "dH:l"}, want: "100.72.58.108"},
		{name: "hex that is four characters long is raw", options: map[string]any{"unknown_245": "a8:3"}, want: "97.56.58.51"},
		{name: "doubled", options: map[string]any{"private_245": "a8:3f:81:10:0a:4d:00:01"}, want: "168.63.129.16"},
		{name: "both, the same", options: map[string]any{"private_245": "41:41:41:41", "unknown_245": "AAAA"}, want: "65.65.65.65"},
		{
			name:    "escaped for the shell, and what NetworkManager makes of that",
			options: map[string]any{"unknown_245": "\\\"\\$\\`\\\\", "private_245": "5c:22:5c:24:5c:60:5c:5c"}, want: "34.36.96.92",
		},
		{name: "empty", options: map[string]any{"private_245": ""}, err: `option 245: "" is 0 bytes long, want 4`},
		{name: "short", options: map[string]any{"private_245": "a8:3f"}, err: `option 245: "a8:3f" is 2 bytes long, want 4`},
		{name: "five bytes", options: map[string]any{"private_245": "a8:3f:81:10:00"}, err: `option 245: "a8:3f:81:10:00" is 5 bytes long, want 4`},
		{name: "text for bytes", options: map[string]any{"private_245": "31:36:38:2e:36:33:2e:31:32:39:2e:31:36"}, err: `option 245: "31:36:38:2e:36:33:2e:31:32:39:2e:31:36" is 13 bytes long, want 4`},
		{name: "no hex", options: map[string]any{"unknown_245": "wire.example"}, err: `option 245: "wire.example" is not an address: want 4 bytes in hex with colons`},
		{name: "two bytes without a colon are not raw", options: map[string]any{"private_245": "a83f"}, err: `option 245: "a83f" is 2 bytes long, want 4`},
		{name: "very long", options: map[string]any{"private_245": strings.Repeat("zz:", 300)}, err: `option 245: "` + strings.Repeat("zz:", 300)[:40] + `" is not an address: want 4 bytes in hex with colons`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := nm.ParseLease(tt.options)
			want := netip.Addr{}
			if tt.want != "" {
				want = netip.MustParseAddr(tt.want)
			}
			if got.WireServer != want || errText(got.WireServerErr) != tt.err {
				t.Errorf("got %v, %q; want %v, %q", got.WireServer, errText(got.WireServerErr), want, tt.err)
			}
		})
	}
}

func FuzzParseLease(f *testing.F) {
	f.Add("private_245", "a8:3f:81:10", "rfc3442_classless_static_routes", "32 168 63 129 16 10 0 0 1")
	f.Add("unknown_245", "dH:l", "domain_name_servers", "10.0.0.1 10.0.0.2")
	f.Add("azureendpoint", "1.2.3.4", "ms_classless_static_routes", "0.0.0.0/0 10.0.0.1")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		l := nm.ParseLease(map[string]any{k1: v1, k2: v2})
		if l.WireServer.IsValid() && (!l.WireServer.Is4() || l.WireServerErr != nil) {
			t.Errorf("wireserver %v with error %v", l.WireServer, l.WireServerErr)
		}
		if l.WireServerErr != nil && len(l.WireServerErr.Error()) > 512 {
			t.Errorf("an error of %d bytes", len(l.WireServerErr.Error()))
		}
		for _, p := range l.Routes {
			if !p.IsValid() || p != p.Masked() {
				t.Errorf("route %v", p)
			}
		}
	})
}
