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

// Target is the WireServer that a check-in goes to.
type Target struct {
	Server    netip.Addr
	Source    boot.Source
	Interface string // whose lease named it; "" if none was read
	// Why says why the constant is taken although there could have been an
	// address in a lease; "" if that is as it should be.
	Why string
}

// TargetOf takes the address from option 245 of a lease. A lease without the
// option, or with one that no request may go to, never costs time: the
// WireServer has the same address in every region.
// own are the machine's own addresses, at which nobody but the constant can be.
func TargetOf(iface string, l nm.Lease, own []netip.Addr) Target {
	t := DefaultTarget(iface, "")
	switch err := wire.CheckAddr(l.WireServer); {
	case errors.Is(l.WireServerErr, networkd.ErrOption245Unknown): // nothing is wrong, and nothing to be said
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

// DefaultTarget is the target where there is no lease to be read.
func DefaultTarget(iface, why string) Target {
	return Target{Server: wire.DefaultAddr, Source: boot.FromConstant, Interface: iface, Why: why}
}

// BestLease picks the lease to check in by where no event names one: that of
// the device with the preferred default route, else any primary one, else any.
func BestLease(devices []nm.Device, defaultRoutes []string) (nm.Device, bool) {
	for _, name := range defaultRoutes {
		for _, d := range devices {
			if d.Interface == name && d.Lease != nil {
				return d, true
			}
		}
	}
	var best nm.Device
	for _, d := range devices {
		if d.Lease != nil && (best.Lease == nil || d.Lease.Primary() && !best.Lease.Primary()) {
			best = d
		}
	}
	return best, best.Lease != nil
}

const (
	relookEvery = 30 * time.Second       // without any change of routes or addresses
	relookPause = 200 * time.Millisecond // after a change: several come together, and the lease with them
)

// Relook looks the target up again whenever something has changed, and every
// half minute, and delivers it if it is at another server than the one before,
// which at first is current. look reports false if no lease can be read: then
// nothing is delivered. It ends with ctx.
func Relook(ctx context.Context, current netip.Addr, changes <-chan struct{}, look func(context.Context) (Target, bool)) <-chan Target {
	targets := make(chan Target)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changes:
				if !wait(ctx, relookPause) {
					return
				}
				select {
				case <-changes: // known by the look that follows
				default:
				}
			case <-time.After(relookEvery):
			}
			t, ok := look(ctx)
			if !ok || t.Server == current {
				continue
			}
			select {
			case targets <- t:
				current = t.Server
			case <-ctx.Done():
				return
			}
		}
	}()
	return targets
}
