package wire

import (
	"fmt"
	"net/netip"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

// DefaultAddr is the WireServer's address in every region and every national
// cloud. Option 245 carries the same one, except where somebody decided
// otherwise. See
// https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
var DefaultAddr = netip.AddrFrom4([4]byte{168, 63, 129, 16})

// CheckAddr reports why an address that came by DHCP cannot be a WireServer's:
// it is not IPv4, or unspecified, loopback, link-local, multicast, broadcast or
// reserved. The error names the address and the reason; nil means that a
// request may go there.
//
// An operator who names an address may mean loopback or link-local (a test, a
// tunnel); a DHCP server cannot. [Reporter] therefore refuses less.
func CheckAddr(a netip.Addr) error {
	if err := CheckTarget(a); err != nil {
		return err
	}
	if a.IsLoopback() {
		return addrError(a, "loopback")
	}
	if a.IsLinkLocalUnicast() {
		return addrError(a, "link-local")
	}
	return nil
}

// CheckTarget reports why no HTTP request over IPv4 can go to a, whoever named
// it: it is not IPv4, or unspecified, multicast, broadcast or reserved. The
// error names the address and the reason. The ranges are those of RFC 6890.
func CheckTarget(a netip.Addr) error {
	if !a.IsValid() {
		return fmt.Errorf("wire: no server address")
	}
	if !a.Is4() {
		return addrError(a, "not IPv4")
	}
	if a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return addrError(a, "broadcast")
	}
	switch first := a.As4()[0]; {
	case first == 0:
		return addrError(a, "unspecified (0.0.0.0/8)")
	case first >= 240:
		return addrError(a, "reserved (240.0.0.0/4)")
	case first >= 224:
		return addrError(a, "multicast")
	}
	return nil
}

func addrError(a netip.Addr, reason string) error {
	return bounded.Error(fmt.Errorf("wire: server address %s: %s", a, reason)) // it can have a zone
}
