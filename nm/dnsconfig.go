package nm

import (
	"net/netip"
	"slices"
	"strings"
)

// Keys of an entry of DnsManager.Configuration.
const (
	keyDNSInterface   = "interface"
	keyDNSNameservers = "nameservers"
	keyDNSDomains     = "domains"
	keyDNSPriority    = "priority"
)

// DNSConfig is the DNS configuration that NetworkManager wants for a link. It
// honours ipv4.ignore-auto-dns, ipv4.dns, global-dns and similar settings, and does
// not depend on the DNS mode.
type DNSConfig struct {
	// Nameservers of both address families, each in NetworkManager's order.
	Nameservers []netip.Addr
	// Domains are search domains, without duplicates (ignoring case).
	Domains []string
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
		switch entry[keyDNSInterface] {
		case nil, "":
			return DNSConfig{Global: true}
		case iface:
		default:
			priority, _ := entry[keyDNSPriority].(int32)
			excluded = excluded || priority < 0
			continue
		}
		servers, _ := entry[keyDNSNameservers].([]string)
		for _, s := range servers {
			a, err := netip.ParseAddr(s)
			switch {
			case err != nil:
				w.Other = append(w.Other, s)
			case !slices.Contains(w.Nameservers, a.WithZone("").Unmap()):
				w.Nameservers = append(w.Nameservers, a.WithZone("").Unmap())
			}
		}
		names, _ := entry[keyDNSDomains].([]string)
		for _, d := range names {
			if !slices.ContainsFunc(w.Domains, func(have string) bool { return strings.EqualFold(have, d) }) {
				w.Domains = append(w.Domains, d)
			}
		}
	}
	w.Excluded = excluded && w.Empty()
	return w
}
