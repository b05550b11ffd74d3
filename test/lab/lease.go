package lab

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Option is an option of DHCPv4 as it goes over the wire.
type Option struct {
	Code byte
	Data []byte
}

// Lease is what the DHCP server gives to a client, and how.
type Lease struct {
	Addr    netip.Addr    // zero: the next free one. A client that asks for another gets a NAK
	Options []Option      // in this order; the same code may come twice
	Delay   time.Duration // before each answer
	Silent  bool          // no answer at all
}

// DHCP option codes that tests change.
const (
	OptSubnetMask     = 1
	OptRouter         = 3
	OptNameservers    = 6
	OptDomain         = 15
	OptLeaseTime      = 51
	OptRenewalTime    = 58
	OptRebindingTime  = 59
	OptDomainSearch   = 119
	OptClasslessRoute = 121
	OptWireServer     = 245
)

// With is the lease with one instance of the option for each value, instead of those it had.
func (l Lease) With(code byte, values ...[]byte) Lease {
	l = l.Without(code)
	for _, v := range values {
		l.Options = append(l.Options, Option{code, v})
	}
	return l
}

// Without is the lease without the options of that code.
func (l Lease) Without(code byte) Lease {
	l.Options = slices.DeleteFunc(slices.Clone(l.Options), func(o Option) bool { return o.Code == code })
	return l
}

// WithAddrs is With for one value of IPv4 addresses, as options 3, 6 and 245 have it.
func (l Lease) WithAddrs(code byte, addrs ...string) Lease {
	var value []byte
	for _, a := range addrs {
		value = append(value, netip.MustParseAddr(a).AsSlice()...)
	}
	return l.With(code, value)
}

// At is the lease with an address; a client that asks for another one gets a NAK.
func (l Lease) At(addr string) Lease {
	l.Addr = netip.MustParseAddr(addr)
	return l
}

// WithTimes is the lease with a length, and with the times after which the client renews and rebinds it: half and
// seven eighths of the length, in whole seconds.
func (l Lease) WithTimes(length time.Duration) Lease {
	for code, d := range map[byte]time.Duration{
		OptLeaseTime: length, OptRenewalTime: length / 2, OptRebindingTime: length * 7 / 8,
	} {
		l = l.With(code, binary.BigEndian.AppendUint32(nil, uint32(d/time.Second)))
	}
	return l
}

// WithRoutes is the lease with option 121. A route is a prefix and a gateway.
func (l Lease) WithRoutes(routes map[string]string) Lease {
	var value []byte
	for _, dest := range slices.Sorted(maps.Keys(routes)) {
		prefix := netip.MustParsePrefix(dest)
		value = append(value, byte(prefix.Bits()))
		value = append(value, prefix.Addr().AsSlice()[:(prefix.Bits()+7)/8]...)
		value = append(value, netip.MustParseAddr(routes[dest]).AsSlice()...)
	}
	return l.With(OptClasslessRoute, value)
}

// AzureLease is what Azure's DHCP server sends to a virtual machine's primary interface: a lease without end, with
// the WireServer in option 245 and as the only server identifier.
func AzureLease() Lease {
	return Lease{}.
		With(OptLeaseTime, []byte{0xff, 0xff, 0xff, 0xff}).
		WithAddrs(optServerID, "168.63.129.16").
		WithAddrs(OptSubnetMask, "255.255.255.0").
		WithAddrs(OptRouter, Gateway).
		WithAddrs(OptNameservers, "168.63.129.16", Gateway).
		With(OptDomain, []byte("lab.internal.cloudapp.net")).
		WithRoutes(map[string]string{"0.0.0.0/0": Gateway, "168.63.129.16/32": Gateway, "169.254.169.254/32": Gateway}).
		WithAddrs(OptWireServer, "168.63.129.16")
}
