package wire

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

// DefaultAddr is the WireServer's address in every region and national cloud, see
// https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
var DefaultAddr = netip.AddrFrom4([4]byte{168, 63, 129, 16})

// CheckAddr reports why an address that came by DHCP cannot be a WireServer's:
// as [CheckTarget], and it must not be loopback or link-local. An operator who
// names such an address may mean it (a test, a tunnel).
func CheckAddr(a netip.Addr) error {
	switch err := CheckTarget(a); {
	case err != nil:
		return err
	case a.IsLoopback():
		return addrError(a, "loopback")
	case a.IsLinkLocalUnicast():
		return addrError(a, "link-local")
	}
	return nil
}

// CheckTarget reports why no HTTP request over IPv4 can go to a: it is not IPv4, or
// unspecified, multicast, broadcast or reserved (RFC 6890).
func CheckTarget(a netip.Addr) error {
	switch {
	case !a.IsValid():
		return errors.New("wire: no server address")
	case !a.Is4():
		return addrError(a, "not IPv4")
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return addrError(a, "broadcast")
	case a.As4()[0] == 0:
		return addrError(a, "unspecified (0.0.0.0/8)")
	case a.As4()[0] >= 240:
		return addrError(a, "reserved (240.0.0.0/4)")
	case a.IsMulticast():
		return addrError(a, "multicast")
	}
	return nil
}

func addrError(a netip.Addr, reason string) error {
	return bounded.Error(fmt.Errorf("wire: server address %s: %s", a, reason)) // it can have a zone
}
