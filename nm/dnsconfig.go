package nm

import (
	"net/netip"
	"slices"
	"strings"
)

// DNSConfig is the DNS configuration that NetworkManager wants for a link. It
// honours ipv4.ignore-auto-dns, ipv4.dns, global-dns and similar settings, and does
// not depend on the DNS mode.
type DNSConfig struct {
	Nameservers []netip.Addr // of both address families, each in NetworkManager's order
	Domains     []string     // search domains, without duplicates (ignoring case)
	// Other has servers that are not plain addresses (DNS over TLS with a
	// name, another port), as NetworkManager spells them.
	Other []string
	// Global reports whether a global DNS configuration replaces that of all
	// links. All other fields are then empty.
	Global bool
	// Excluded reports whether the link has no entry because that of another
	// interface has a negative priority (ipv4.dns-priority).
	Excluded bool
}

// Empty reports whether NetworkManager wants no nameserver at all.
func (w DNSConfig) Empty() bool { return len(w.Nameservers) == 0 && len(w.Other) == 0 }

// ParseDNSConfig merges the entries of DnsManager.Configuration for one
// interface: NetworkManager makes one for each address family, none for a
// family without servers, and entries without an interface for global-dns,
// which replace all others, even where those are listed beside them (seen with
// 1.42.4).
func ParseDNSConfig(configuration []map[string]any, iface string) DNSConfig {
	var w DNSConfig
	excluded := false
	for _, entry := range configuration {
		switch entry["interface"] {
		case nil, "":
			return DNSConfig{Global: true}
		case iface:
			servers, _ := entry["nameservers"].([]string)
			domains, _ := entry["domains"].([]string)
			w.add(servers, domains)
		default:
			priority, _ := entry["priority"].(int32)
			excluded = excluded || priority < 0
		}
	}
	w.Excluded = excluded && w.Empty()
	return w
}

func (w *DNSConfig) add(servers, domains []string) {
	for _, s := range servers {
		a, err := netip.ParseAddr(s)
		a = a.WithZone("").Unmap()
		switch {
		case err != nil:
			w.Other = append(w.Other, s)
		case !slices.Contains(w.Nameservers, a):
			w.Nameservers = append(w.Nameservers, a)
		}
	}
	for _, d := range domains {
		if !slices.ContainsFunc(w.Domains, func(have string) bool { return strings.EqualFold(have, d) }) {
			w.Domains = append(w.Domains, d)
		}
	}
}
