// Package networkd reads the links that systemd-networkd manages: their DHCPv4
// leases, nameservers and states.
//
// All of it comes from one call of Manager.Describe over D-Bus,
// org.freedesktop.network1(5); no lease file is read, and systemd-networkd is
// never started. Parsing functions take plain values.
package networkd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/godbus/dbus/v5"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// Names on the bus, org.freedesktop.network1(5).
const (
	busName     = "org.freedesktop.network1"
	managerPath = "/org/freedesktop/network1"
)

// ErrNotRunning is returned if systemd-networkd's name on the bus has no owner, or
// if it is older than systemd 249, which has no Describe.
var ErrNotRunning = errors.New("systemd-networkd is not running")

// ErrOption245Unknown is the WireServerErr of leases from systemd-networkd before
// version 256, which does not report option 245.
var ErrOption245Unknown = errors.New("systemd-networkd before 256 does not report option 245")

// Link is a network interface known to systemd-networkd.
type Link struct {
	Name       string
	Index      int
	Master     int    // index of the bond, bridge or VRF that it is part of; 0 if none
	OperState  string // as networkctl prints it, "routable"
	AdminState string // as networkctl prints it, "configured"
	// Managed reports whether a .network file applies to the link and does not set
	// it to unmanaged.
	Managed bool
	// DHCP reports whether a DHCPv4 client is running on the link. Before systemd
	// 256 it is only set if there is a lease.
	DHCP bool
	// Lease is nil if there is no DHCPv4 lease, or not yet. Its Domains are
	// always empty. Its WireServerErr can be [ErrOption245Unknown].
	Lease *nm.Lease
	// Nameservers are those of the link, from the lease and from other sources.
	Nameservers []netip.Addr
}

// Describe returns all links that systemd-networkd knows, managed or not. The
// error is ErrNotRunning if it is not running, or wraps the context's.
func Describe(ctx context.Context, conn *dbus.Conn) ([]Link, error) {
	var reply string
	err := conn.Object(busName, managerPath).CallWithContext(ctx, busName+".Manager.Describe", dbus.FlagNoAutoStart).Store(&reply)
	if err == nil {
		return Parse([]byte(reply))
	}
	e, _ := errors.AsType[dbus.Error](err)
	switch e.Name {
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
		"org.freedesktop.DBus.Error.NoReply",       // it ended before it answered
		"org.freedesktop.DBus.Error.UnknownMethod": // before systemd 249
		err = ErrNotRunning
	default:
		if ctx.Err() != nil {
			err = fmt.Errorf("systemd-networkd does not answer: %w", context.Cause(ctx))
		}
	}
	return nil, fmt.Errorf("networkd: %w", err)
}

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
