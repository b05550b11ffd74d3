package networkd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// maxReply bounds what Describe may return, about 5 KB a link.
const maxReply = 32 << 20

// fromDHCP4 is a value of systemd's network_config_source.
const fromDHCP4 = "DHCPv4"

// linkJSON has the fields of a link that are read. Systemd 252 has no DHCPv4Client.
type linkJSON struct {
	Index, MasterInterfaceIndex                 int
	Name, OperationalState, AdministrativeState string
	NetworkFile                                 string
	Addresses, DNS, Routes                      []entryJSON
	DHCPv4Client                                *struct {
		Lease          *struct{}
		PrivateOptions []struct {
			Option            int
			PrivateOptionData string
		}
	}
}

// entryJSON is an address, a nameserver or a route.
type entryJSON struct {
	Address, Destination, Gateway numbers
	DestinationPrefixLength       int
	ConfigSource                  string
}

// numbers is how systemd writes the bytes of an address. Not []byte, which
// encoding/json takes for base64.
type numbers []int

// addr returns the zero Addr for an invalid address.
func (n numbers) addr() netip.Addr {
	b := make([]byte, len(n))
	for i, v := range n {
		if v < 0 || v > 255 {
			return netip.Addr{}
		}
		b[i] = byte(v)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Parse decodes the reply of Manager.Describe. Fields that are unknown or cannot be
// decoded are omitted. The error says that it is not a JSON object, or too large.
func Parse(text []byte) ([]Link, error) {
	if len(text) > maxReply {
		return nil, fmt.Errorf("networkd: Describe returned %d bytes, want at most %d", len(text), maxReply)
	}
	var reply struct{ Interfaces []linkJSON }
	err := json.Unmarshal(text, &reply)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok { // else only that field is missing
		return nil, fmt.Errorf("networkd: Describe returned %d bytes: %w", len(text), err)
	}
	var out []Link
	for _, j := range reply.Interfaces {
		if j.Name == "" || j.Index <= 0 {
			continue
		}
		l := Link{
			Name: j.Name, Index: j.Index, Master: j.MasterInterfaceIndex,
			OperState: j.OperationalState, AdminState: j.AdministrativeState,
			Managed: j.NetworkFile != "" && j.AdministrativeState != "unmanaged",
			Lease:   j.lease(),
		}
		l.DHCP = l.Lease != nil || j.DHCPv4Client != nil
		for _, d := range j.DNS {
			if a := d.Address.addr(); a.IsValid() {
				l.Nameservers = append(l.Nameservers, a)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// lease returns the DHCPv4 lease, nil without one. Before systemd 256 only the source
// of an address shows it. Later, an address can be left over from before
// systemd-networkd was restarted although there is no lease yet.
func (j *linkJSON) lease() *nm.Lease {
	l := &nm.Lease{WireServerErr: ErrOption245Unknown}
	for _, a := range j.Addresses {
		if addr := a.Address.addr(); addr.Is4() && a.ConfigSource == fromDHCP4 && !l.Address.IsValid() {
			l.Address = addr
		}
	}
	switch c := j.DHCPv4Client; {
	case c == nil && !l.Address.IsValid(), c != nil && c.Lease == nil && c.PrivateOptions == nil:
		return nil
	case c != nil:
		l.WireServerErr = nil
		for _, o := range c.PrivateOptions {
			if o.Option == 245 { // if it came twice, systemd 257 has the first, 262 joins both
				l.WireServer, l.WireServerErr = nm.DecodeOption245(o.PrivateOptionData)
				break
			}
		}
	}
	for _, d := range j.DNS {
		if addr := d.Address.addr(); addr.Is4() && d.ConfigSource == fromDHCP4 {
			l.Nameservers = append(l.Nameservers, addr)
		}
	}
	for _, r := range j.Routes {
		p := netip.PrefixFrom(r.Destination.addr(), r.DestinationPrefixLength).Masked()
		gw := r.Gateway.addr()
		// Without a gateway it is RoutesToDNS= of systemd.network(5): that to
		// Azure's nameserver, which is the WireServer, makes no primary interface.
		if r.ConfigSource != fromDHCP4 || !p.Addr().Is4() || !gw.Is4() {
			continue
		}
		l.Routes = append(l.Routes, p)
		if p.Bits() == 0 {
			l.Routers = append(l.Routers, gw)
		}
	}
	return l
}
