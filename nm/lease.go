package nm

import (
	"net/netip"
	"slices"
	"strings"
)

// Keys of DHCP4Config.Options on D-Bus. The names are NetworkManager's
// (src/core/dhcp/nm-dhcp-options.c); those of the dhclient and dhcpcd plug-ins
// follow.
const (
	keyAddress       = "ip_address"
	keyRouters       = "routers"                         // option 3
	keyNameservers   = "domain_name_servers"             // option 6
	keyDomain        = "domain_name"                     // option 15
	keySearch        = "domain_search"                   // option 119
	keyRoutes        = "rfc3442_classless_static_routes" // option 121
	keyRoutesDHCPCD  = "classless_static_routes"         // option 121, dhcpcd
	keyRoutesMS      = "ms_classless_static_routes"      // option 249
	maxOptionEntries = 256                               // a DHCP message holds fewer
)

// Addresses that only the primary network interface of an Azure VM gets a
// route to: the WireServer and the instance metadata service.
var (
	routeWireServer = netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)
	routeIMDS       = netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, 169, 254}), 32)
)

// Lease is a DHCPv4 lease. All addresses are IPv4; entries that cannot be decoded
// are omitted.
type Lease struct {
	// Address is the machine's own address; zero if the lease names none.
	Address netip.Addr
	// Nameservers is option 6 in the server's order, unfiltered: it
	// can contain unspecified, loopback and duplicate addresses.
	Nameservers []netip.Addr
	// Domains is option 119, or else option 15.
	Domains []string
	// Routers is option 3.
	Routers []netip.Addr
	// Routes are the destinations of option 121, or else of option 249.
	Routes []netip.Prefix
	// WireServer is option 245; zero if the lease has none, or none that
	// can be decoded. See wire.CheckAddr.
	WireServer netip.Addr
	// WireServerErr is why option 245 is not known: it could not be decoded, or
	// the source of the lease does not report it. Nil if it could be decoded, or
	// is absent.
	WireServerErr error
}

// ParseLease decodes DHCP4Config.Options. All values are strings on the bus;
// a value of another type is ignored.
func ParseLease(options map[string]any) Lease {
	get := func(key string) string {
		s, _ := options[key].(string)
		return s
	}
	l := Lease{
		Nameservers: addrs(get(keyNameservers)),
		Routers:     addrs(get(keyRouters)),
		Domains:     domains(get(keySearch)),
	}
	if a := addrs(get(keyAddress)); len(a) > 0 {
		l.Address = a[0]
	}
	if len(l.Domains) == 0 {
		l.Domains = domains(get(keyDomain))
	}
	for _, key := range []string{keyRoutes, keyRoutesDHCPCD, keyRoutesMS} {
		if l.Routes = routes(get(key)); len(l.Routes) > 0 {
			break
		}
	}
	l.WireServer, l.WireServerErr = option245(options)
	return l
}

// Primary reports whether the lease belongs to the primary network interface,
// the only one that the WireServer is sure to answer: it contains a route to the
// WireServer or the metadata service, or a default route.
func (l Lease) Primary() bool {
	return l.HostRoute() || len(l.Routers) > 0 || slices.ContainsFunc(l.Routes, func(p netip.Prefix) bool { return p.Bits() == 0 })
}

// HostRoute reports whether the lease has a route to the WireServer or to the
// metadata service, which on Azure only that of the primary network interface
// has.
func (l Lease) HostRoute() bool {
	return slices.Contains(l.Routes, routeWireServer) || slices.Contains(l.Routes, routeIMDS)
}

func addrs(s string) []netip.Addr {
	var out []netip.Addr
	for f := range strings.FieldsSeq(s) {
		if a, err := netip.ParseAddr(f); err == nil && a.Is4() && len(out) < maxOptionEntries {
			out = append(out, a)
		}
	}
	return out
}

// domains splits a list of names. dhclient appends a dot to each.
func domains(s string) []string {
	var out []string
	for f := range strings.FieldsSeq(s) {
		if f = strings.TrimSuffix(f, "."); f != "" && len(out) < maxOptionEntries {
			out = append(out, f)
		}
	}
	return out
}
