package nm

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

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
