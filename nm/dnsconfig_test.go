package nm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

func TestParseDNSConfig(t *testing.T) {
	entry := func(iface string, servers, domains []string) map[string]any {
		e := map[string]any{"nameservers": servers, "priority": int32(100), "vpn": false}
		if iface != "" {
			e["interface"] = iface
		}
		if domains != nil {
			e["domains"] = domains
		}
		return e
	}
	tests := []struct {
		name   string
		config []map[string]any
		want   nm.DNSConfig
	}{
		{name: "nothing"},
		{name: "another interface", config: []map[string]any{entry("eth1", []string{"10.0.0.1"}, nil)}},
		{name: "global-dns replaces the link's", config: []map[string]any{entry("", []string{"10.0.0.1"}, nil)}, want: nm.DNSConfig{Global: true}},
		{
			name:   "global-dns beside the link's own entry",
			config: []map[string]any{entry("eth0", []string{"10.0.0.2"}, []string{"a.example"}), entry("", []string{"10.0.0.1"}, nil)},
			want:   nm.DNSConfig{Global: true},
		},
		{
			name:   "domains that differ in case",
			config: []map[string]any{entry("eth0", []string{"10.0.0.1"}, []string{"corp.example", "Corp.Example"})},
			want:   nm.DNSConfig{Nameservers: addrs("10.0.0.1"), Domains: []string{"corp.example"}},
		},
		{
			name: "one entry per address family",
			config: []map[string]any{
				entry("eth0", []string{"168.63.129.16", "10.0.0.1"}, []string{"a.example", "b.example"}),
				entry("eth1", []string{"10.1.0.1"}, []string{"c.example"}),
				entry("eth0", []string{"2001:db8::1", "fe80::1%eth0"}, []string{"a.example"}),
			},
			want: nm.DNSConfig{Nameservers: addrs("168.63.129.16 10.0.0.1 2001:db8::1 fe80::1"), Domains: []string{"a.example", "b.example"}},
		},
		{
			name:   "servers that are more than an address",
			config: []map[string]any{entry("eth0", []string{"dns+tls://1.1.1.1#one.example", "10.0.0.1"}, nil)},
			want:   nm.DNSConfig{Nameservers: addrs("10.0.0.1"), Other: []string{"dns+tls://1.1.1.1#one.example"}},
		},
		{
			name:   "values of other types",
			config: []map[string]any{{"interface": "eth0", "nameservers": "10.0.0.1", "domains": 3}, {"interface": 4}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := nm.ParseDNSConfig(tt.config, "eth0")
			if diff := cmp.Diff(tt.want, got, compare); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			if want := len(tt.want.Nameservers)+len(tt.want.Other) == 0; got.Empty() != want {
				t.Errorf("Empty() = %v, want %v", got.Empty(), want)
			}
		})
	}
}

func FuzzParseDNSConfig(f *testing.F) {
	f.Add("eth0", "10.0.0.1", "a.example", "eth0")
	f.Add("", "fe80::1%eth0", "~.", "eth0")
	f.Fuzz(func(t *testing.T, name, server, domain, iface string) {
		w := nm.ParseDNSConfig([]map[string]any{{"interface": name, "nameservers": []string{server, server}, "domains": []string{domain, domain}}}, iface)
		if name != iface && !w.Empty() {
			t.Errorf("the configuration of %q counts for %q: %+v", name, iface, w)
		}
		for _, a := range w.Nameservers {
			if !a.IsValid() || a.Zone() != "" {
				t.Errorf("nameserver %v", a)
			}
		}
	})
}
