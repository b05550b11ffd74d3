package nm

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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

// ParseLease decodes DHCP4Config.Options, whose keys are those of NetworkManager's
// src/core/dhcp/nm-dhcp-options.c, of dhclient and of dhcpcd. All values are strings
// on the bus; a value of another type is ignored.
func ParseLease(options map[string]any) Lease {
	// fields returns the words of the first of these options that is not empty.
	fields := func(keys ...string) []string {
		for _, key := range keys {
			s, _ := options[key].(string)
			if f := strings.Fields(s); len(f) > 0 {
				return f
			}
		}
		return nil
	}
	l := Lease{
		Nameservers: addrs(fields("domain_name_servers")),
		Routers:     addrs(fields("routers")),
		Routes:      routes(fields("rfc3442_classless_static_routes", "classless_static_routes", "ms_classless_static_routes")),
	}
	if a := addrs(fields("ip_address")); len(a) > 0 {
		l.Address = a[0]
	}
	for _, d := range fields("domain_search", "domain_name") {
		if d = strings.TrimSuffix(d, "."); d != "" { // dhclient appends one
			l.Domains = append(l.Domains, d)
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

func addrs(fields []string) []netip.Addr {
	var out []netip.Addr
	for _, f := range fields {
		if a, err := netip.ParseAddr(f); err == nil && a.Is4() {
			out = append(out, a)
		}
	}
	return out
}

// routes returns the destinations of a classless static routes option. The
// internal client writes "DEST/LEN GATEWAY ...", dhclient plain numbers as in
// RFC 3442: "LEN OCTETS... G G G G ...", with as many octets as LEN needs.
func routes(fields []string) []netip.Prefix {
	var out []netip.Prefix
	var octets []byte
	for _, f := range fields {
		p, err := netip.ParsePrefix(f)
		if err == nil && p.Addr().Is4() {
			out = append(out, p.Masked())
		}
		if n, err := strconv.ParseUint(f, 10, 8); err == nil {
			octets = append(octets, byte(n))
		}
	}
	for len(octets) > 0 {
		bits := int(octets[0])
		end := 1 + (bits+7)/8
		if bits > 32 || len(octets) < end+4 {
			break
		}
		var dest [4]byte
		copy(dest[:], octets[1:end])
		out = append(out, netip.PrefixFrom(netip.AddrFrom4(dest), bits).Masked())
		octets = octets[end+4:]
	}
	return out
}

// unknown245 is where dhclient has option 245, the WireServer's address.
const unknown245 = "unknown_245"

// option245 reads the option under all names. A missing option is not an error.
func option245(options map[string]any) (netip.Addr, error) {
	keys := []string{
		"private_245",   // all clients but dhcpcd: hex, two digits a byte
		unknown245,      // dhclient beside it: unpadded hex, or raw text
		"azureendpoint", // dhcpcd 10.0.7 and later: dotted
	}
	// dhclient prints bytes that are all printable as text and escapes four of
	// them for the shell; NetworkManager then derives private_245 from the
	// escaped text, which is wrong. So escaped text goes first.
	if s, _ := options[unknown245].(string); strings.Contains(s, `\`) {
		keys = []string{unknown245}
	}
	for _, key := range keys {
		if s, ok := options[key].(string); ok {
			return decode245(s, key == unknown245)
		}
	}
	return netip.Addr{}, nil
}

// DecodeOption245 decodes option 245 as DHCP clients write it: four bytes in hex,
// with colons or without, or a dotted address. It is for other sources of a lease
// than NetworkManager.
func DecodeOption245(s string) (netip.Addr, error) { return decode245(s, false) }

// decode245 decodes four bytes in any of the forms that DHCP clients write:
// "a8:3f:81:10", "a:0:0:4", "a83f8110", "168.63.129.16", or the four bytes
// themselves, of which one may be a colon. raw says that the last can occur: then
// what is four bytes long can be nothing else. A client joins an option that
// comes twice (RFC 3396): the first four bytes count then.
func decode245(s string, raw bool) (netip.Addr, error) {
	// dhclient's escapes of the shell's special characters
	text := strings.NewReplacer(`\"`, `"`, `\$`, `$`, "\\`", "`", `\\`, `\`).Replace(s)
	if raw && len(text) == 4 {
		return netip.AddrFrom4([4]byte([]byte(text))), nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
		return a, nil
	}
	digits := strings.Split(text, ":")
	for i, d := range digits {
		if len(d) == 1 {
			digits[i] = "0" + d
		}
	}
	b, err := hex.DecodeString(strings.Join(digits, ""))
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("option 245: %.40q is not an address: want 4 bytes in hex with colons", s)
	case len(b) == 0 || len(b)%4 != 0:
		return netip.Addr{}, fmt.Errorf("option 245: %.40q is %d bytes long, want 4", s, len(b))
	}
	return netip.AddrFrom4([4]byte(b[:4])), nil
}
