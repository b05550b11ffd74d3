package nm

import (
	"net/netip"
	"strconv"
	"strings"
)

// routes returns the destinations of a classless static routes option. The
// internal client writes "DEST/LEN GATEWAY ...", dhclient plain numbers as in
// RFC 3442: "LEN OCTETS... G G G G ...", with as many octets as LEN needs.
func routes(s string) []netip.Prefix {
	f := strings.Fields(s)
	if len(f) == 0 {
		return nil
	}
	if strings.Contains(f[0], "/") {
		return slashRoutes(f)
	}
	return numberRoutes(f)
}

func slashRoutes(f []string) []netip.Prefix {
	var out []netip.Prefix
	for ; len(f) >= 2 && len(out) < maxOptionEntries; f = f[2:] {
		if p, err := netip.ParsePrefix(f[0]); err == nil && p.Addr().Is4() {
			out = append(out, p.Masked())
		}
	}
	return out
}

func numberRoutes(f []string) []netip.Prefix {
	octets := make([]byte, len(f))
	for i, s := range f {
		n, err := strconv.ParseUint(s, 10, 8)
		if err != nil {
			return nil
		}
		octets[i] = byte(n)
	}
	var out []netip.Prefix
	for len(octets) > 0 && len(out) < maxOptionEntries {
		bits := int(octets[0])
		used := 1 + (bits+7)/8 + 4
		if bits > 32 || len(octets) < used {
			return out
		}
		var dest [4]byte
		copy(dest[:], octets[1:1+(bits+7)/8])
		out = append(out, netip.PrefixFrom(netip.AddrFrom4(dest), bits).Masked())
		octets = octets[used:]
	}
	return out
}
