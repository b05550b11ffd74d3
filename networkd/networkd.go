// Package networkd reads what systemd-networkd says about the links that it
// manages: their DHCPv4 leases, nameservers and states.
//
// All of it comes from one call of Manager.Describe over D-Bus,
// org.freedesktop.network1(5); no lease file is read, and asking never starts
// systemd-networkd. Decoding takes plain values.
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

// ErrNotRunning says that nobody owns systemd-networkd's name on the bus, or
// that it is older than systemd 249 and cannot describe its links.
var ErrNotRunning = errors.New("systemd-networkd is not running")

// ErrOption245Unknown is the WireServerErr of a lease of which systemd-networkd
// does not say whether it has option 245: only systemd 256 and later do.
var ErrOption245Unknown = errors.New("systemd-networkd before 256 does not report option 245")

// Link is a network interface as systemd-networkd sees it.
type Link struct {
	Name       string
	Index      int
	Master     int    // index of the bond, bridge or VRF that it is part of; 0 if none
	OperState  string // as networkctl prints it, "routable"
	AdminState string // as networkctl prints it, "configured"
	// Managed says that a .network file applies to the link and does not leave
	// it unmanaged.
	Managed bool
	// DHCP says that a DHCPv4 client runs on the link. Systemd before 256 says
	// so only once there is a lease.
	DHCP bool
	// Lease is nil if there is no DHCPv4 lease, or not yet. Its Domains are
	// always empty. Its WireServerErr can be [ErrOption245Unknown].
	Lease *nm.Lease
	// Nameservers are all of the link's, from the lease and from elsewhere.
	Nameservers []netip.Addr
}

// Describe returns all links that systemd-networkd knows, managed or not. The
// error is ErrNotRunning where it cannot be asked, or the context's.
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
