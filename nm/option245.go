package nm

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// Keys under which option 245, the WireServer's address, can occur.
const (
	keyPrivate245 = "private_245"   // all clients but dhcpcd: hex, two digits a byte
	keyUnknown245 = "unknown_245"   // dhclient beside it: unpadded hex, or raw text
	keyEndpoint   = "azureendpoint" // dhcpcd 10.0.7 and later: dotted
)

// option245 reads the option under all names. A missing option is not an error.
func option245(options map[string]any) (netip.Addr, error) {
	// dhclient prints bytes that are all printable as text and escapes four of
	// them for the shell; NetworkManager then derives private_245 from the
	// escaped text, which is wrong. So escaped text goes first.
	if s, _ := options[keyUnknown245].(string); strings.Contains(s, `\`) {
		return decode245(s, true)
	}
	for _, key := range []string{keyPrivate245, keyUnknown245, keyEndpoint} {
		if s, ok := options[key].(string); ok {
			return decode245(s, key == keyUnknown245)
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
	text := unescape(s)
	if raw && len(text) == 4 {
		return netip.AddrFrom4([4]byte([]byte(text))), nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
		return a, nil
	}
	b, err := hexBytes(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("option 245: %s is not an address: want 4 bytes in hex with colons", quote(s))
	}
	if len(b) == 0 || len(b)%4 != 0 {
		return netip.Addr{}, fmt.Errorf("option 245: %s is %d bytes long, want 4", quote(s), len(b))
	}
	return netip.AddrFrom4([4]byte(b[:4])), nil
}

func hexBytes(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	if !strings.Contains(s, ":") {
		if len(s) == 1 {
			s = "0" + s
		}
		return hex.DecodeString(s)
	}
	var out []byte
	for f := range strings.SplitSeq(s, ":") {
		if len(f) == 1 {
			f = "0" + f
		}
		b, err := hex.DecodeString(f)
		if err != nil || len(b) != 1 {
			return nil, fmt.Errorf("%q is not a byte in hex", f)
		}
		out = append(out, b[0])
	}
	return out, nil
}

// unescape removes dhclient's escapes of the shell's special characters.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\"`, `"`, `\$`, `$`, "\\`", "`", `\\`, `\`).Replace(s)
}

// quoteLimit bounds the bytes of an option that an error quotes.
const quoteLimit = 64

func quote(s string) string {
	if len(s) > quoteLimit {
		return fmt.Sprintf("%q...", s[:quoteLimit])
	}
	return fmt.Sprintf("%q", s)
}
