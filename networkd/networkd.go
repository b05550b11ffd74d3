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
	describe    = "org.freedesktop.network1.Manager.Describe"
)

// Names of D-Bus errors: nobody owns the name, its owner ended before it answered,
// and a manager before systemd 249.
const (
	errServiceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
	errNameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
	errNoReply        = "org.freedesktop.DBus.Error.NoReply"
	errUnknownMethod  = "org.freedesktop.DBus.Error.UnknownMethod"
)

// maxReply bounds what Describe may return, about 5 KB a link.
const maxReply = 32 << 20

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
	err := conn.Object(busName, managerPath).CallWithContext(ctx, describe, dbus.FlagNoAutoStart).Store(&reply)
	if e, ok := errors.AsType[dbus.Error](err); ok {
		switch e.Name {
		case errServiceUnknown, errNameHasNoOwner, errNoReply, errUnknownMethod:
			return nil, fmt.Errorf("networkd: %w", ErrNotRunning)
		}
	}
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("networkd: systemd-networkd does not answer: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("networkd: %w", err)
	}
	return Parse([]byte(reply))
}
