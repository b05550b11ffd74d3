package dispatch

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Target is the WireServer that a check-in is sent to.
type Target struct {
	Server    netip.Addr
	Source    boot.Source
	Interface string // whose lease named it; "" if none was read
	// Why is the reason for using the default address instead of one from a lease;
	// "" if that is expected.
	Why string
}

// TargetOf returns the target that option 245 of a lease names. Without the option,
// or if its address cannot be a WireServer's, that is the default address, which is
// valid in every region. own are the machine's own addresses.
func TargetOf(iface string, l nm.Lease, own []netip.Addr) Target {
	t := DefaultTarget(iface, "")
	switch err := wire.CheckAddr(l.WireServer); {
	case errors.Is(l.WireServerErr, networkd.ErrOption245Unknown): // expected, so there is no reason to log
	case l.WireServerErr != nil:
		t.Why = l.WireServerErr.Error()
	case !l.WireServer.IsValid():
		t.Why = "the lease has no option 245"
	case err != nil:
		t.Why = "option 245: " + err.Error()
	case l.WireServer != wire.DefaultAddr && (l.WireServer == l.Address || slices.Contains(own, l.WireServer)):
		t.Why = "option 245: " + l.WireServer.String() + " is an address of this machine"
	default:
		t.Server, t.Source = l.WireServer, boot.FromOption245
	}
	return t
}

// DefaultTarget returns the target for the default address, used because of why.
func DefaultTarget(iface, why string) Target {
	return Target{Server: wire.DefaultAddr, Source: boot.FromConstant, Interface: iface, Why: why}
}

// Leased returns the devices of both network managers that have a DHCPv4 lease. The
// first one counts for a check-in without an event: the primary interface by the routes
// of its lease, else the one with the preferred default route, else any.
func Leased(devices []nm.Device, links []networkd.Link, defaultRoutes []string) []nm.Device {
	devices = slices.DeleteFunc(slices.Clone(devices), func(d nm.Device) bool { return d.Lease == nil })
	for _, l := range links {
		if l.Lease != nil {
			devices = append(devices, nm.Device{Interface: l.Name, Lease: l.Lease})
		}
	}
	rank := func(d nm.Device) int {
		n, at := len(defaultRoutes), slices.Index(defaultRoutes, d.Interface)
		if at < 0 {
			at = n
		}
		switch {
		case d.Lease.HostRoute():
			return at
		case at < n || d.Lease.Primary():
			return n + 1 + at
		}
		return 2*n + 2
	}
	slices.SortStableFunc(devices, func(a, b nm.Device) int { return rank(a) - rank(b) })
	return devices
}

const (
	watchEvery = 30 * time.Second       // without a change of routes or addresses
	watchPause = 200 * time.Millisecond // after a change, since several changes and the lease come together
)

// NextTarget calls look on each change and every 30 s, until the server of the target
// differs from the current one. look returns false if no lease can be read, NextTarget
// if ctx ended.
func NextTarget(ctx context.Context, current netip.Addr, changes <-chan struct{}, look func(context.Context) (Target, bool)) (Target, bool) {
	for {
		select {
		case <-ctx.Done():
			return Target{}, false
		case <-changes:
			if !wait(ctx, watchPause) {
				return Target{}, false
			}
		case <-time.After(watchEvery):
		}
		if t, ok := look(ctx); ok && t.Server != current {
			return t, true
		}
	}
}
