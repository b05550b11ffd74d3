package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const (
	routeLimit  = 30 * time.Second      // to wait for a route to the WireServer; attempts are then made without one
	leasesLimit = 5 * time.Second       // to read all leases once
	leaseLate   = 5 * time.Second       // to wait for an expected lease although there is a route
	leasePoll   = 50 * time.Millisecond // between reads
)

// configuring is the AdminState of a link until systemd-networkd has configured it.
const configuring = "configuring"

// networkdState exists once systemd-networkd has run, relative to /.
const networkdState = "run/systemd/netif/state"

// followLeases waits for a route to the WireServer, and returns the target of the
// check-in and a function that waits for another one, CheckIn.NextTarget.
func followLeases(ctx context.Context, root fs.FS) (dispatch.Target, func(context.Context, netip.Addr) (dispatch.Target, bool)) {
	changes, _ := netlink.Changes(ctx) // without it, leases are read every 30 s
	limited, cancel := context.WithTimeout(ctx, routeLimit)
	netlink.WaitRoute(limited, wire.DefaultAddr, changes)
	cancel()
	t, _, late := leaseTarget(ctx, root)
	for end := time.Now().Add(leaseLate); late && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(leasePoll)
		t, _, late = leaseTarget(ctx, root)
	}
	look := func(ctx context.Context) (dispatch.Target, bool) {
		t, found, _ := leaseTarget(ctx, root)
		return t, found
	}
	return t, func(ctx context.Context, current netip.Addr) (dispatch.Target, bool) {
		return dispatch.NextTarget(ctx, current, changes, look)
	}
}

// leaseTarget returns the target of the primary interface's lease, or the default
// address without one. late reports whether a better lease can be expected: the
// only lease is not of a primary interface, or a DHCP client of systemd-networkd
// has none yet, or systemd-networkd has been started but is not on the bus yet.
// There can be a route nevertheless, of that interface or left over from the initrd.
func leaseTarget(ctx context.Context, root fs.FS) (t dispatch.Target, found, late bool) {
	devices, late, err := leases(ctx, root)
	if len(devices) > 0 {
		best := devices[0]
		return dispatch.TargetOf(best.Interface, *best.Lease, ownAddrs()), true, !best.Lease.Primary()
	}
	if err != nil {
		return dispatch.DefaultTarget("", "the lease cannot be read: "+err.Error()), false, late
	}
	return dispatch.DefaultTarget("", "there is no DHCPv4 lease"), false, late
}

// leases returns the devices that have a DHCPv4 lease, see [dispatch.Leased].
// NetworkManager and systemd-networkd are queried in parallel without starting them:
// the one that has the lease counts, not the one that is running.
func leases(ctx context.Context, root fs.FS) (devices []nm.Device, late bool, err error) {
	limit, cancel := context.WithTimeoutCause(ctx, leasesLimit, fmt.Errorf("no answer within %v", leasesLimit))
	defer cancel()
	conn, err := sysbus.Connect(ctx, limit)
	if err != nil {
		return nil, false, err
	}
	var manager nm.Snapshot
	var links []networkd.Link
	var nmErr, networkdErr error
	var wg sync.WaitGroup
	wg.Go(func() { manager, nmErr = nm.Read(limit, conn) })
	wg.Go(func() { links, networkdErr = networkd.Describe(limit, conn) })
	wg.Wait()
	for _, l := range links {
		late = late || l.Managed && l.Lease == nil && (l.DHCP || l.AdminState == configuring)
	}
	if errors.Is(nmErr, nm.ErrNotRunning) {
		nmErr = nil
	}
	if errors.Is(networkdErr, networkd.ErrNotRunning) {
		_, err := fs.Stat(root, networkdState)
		late, networkdErr = err == nil, nil
	}
	return dispatch.Leased(manager.Devices, links, link.DefaultRoutes(root)), late, errors.Join(nmErr, networkdErr)
}
