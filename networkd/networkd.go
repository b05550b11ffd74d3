// Package networkd reads the links that systemd-networkd manages: their DHCPv4
// leases, nameservers and states.
//
// All of it comes from one call of Manager.Describe over D-Bus,
// org.freedesktop.network1(5); no lease file is read, and systemd-networkd is
// never started. Parsing functions take plain values.
package networkd

import (
	"context"
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
