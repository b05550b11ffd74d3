package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// defineCheckIn defines check-in, which nm-azure-checkin.service runs. Without
// --server it also configures the nameservers that the hook could not, in parallel.
func defineCheckIn(flags *flag.FlagSet) func() (int, error) {
	force := flags.Bool("force", false, "report Ready even if this boot has a report already")
	timeout := timeoutFlag(flags, noTimeout, "give up after `DURATION`, such as 90s or 20m; by default never")
	operator := dispatch.Target{Source: boot.FromOperator}
	const usage = "report to the WireServer at `ADDR`, an IPv4 address; no lease is read, and the platform is not checked"
	flags.Func("server", usage, func(s string) (err error) {
		if operator.Server, err = netip.ParseAddr(s); err != nil || wire.CheckTarget(operator.Server) != nil {
			return errors.New("want the IPv4 address of one host, such as 168.63.129.16")
		}
		return nil
	})
	return func() (int, error) {
		if operator.Server.IsValid() {
			return withCheckIn(*timeout, func(ctx context.Context, c *dispatch.CheckIn) (int, error) {
				return reportReady(ctx, c, operator, *force)
			})
		}
		remedy := "; to check in anyway, use --server " + wire.DefaultAddr.String()
		return onAzure(remedy, *timeout, func(ctx context.Context, c *dispatch.CheckIn) (int, error) {
			dns := make(chan error, 1)
			go func() {
				dns <- c.FinishNameservers(ctx, func(err error) { printf(os.Stderr, "nm-azure-dispatch: check-in: retrying: %v\n", err) })
			}()
			status, err := reportReady(ctx, c, dispatch.Target{}, *force)
			if dnsErr := <-dns; dnsErr != nil && !errors.Is(ctx.Err(), context.Canceled) {
				c.Log(journal.NameserversFailed, slog.Any("error", dnsErr))
				printf(os.Stderr, "nm-azure-dispatch: %v\n", dnsErr)
				status = exitFailed
			}
			return status, err
		})
	}
}

// reportReady checks in with the target, or the target of the lease if it is
// zero, and prints the result.
func reportReady(ctx context.Context, c *dispatch.CheckIn, t dispatch.Target, force bool) (int, error) {
	rec, done := c.Done()
	if done && !force {
		printRecord(rec, "already ")
		return exitDone, nil
	}
	if !t.Server.IsValid() {
		t, c.NextTarget = followLeases(ctx, os.DirFS("/"))
	}
	rec, err := c.Follow(ctx, t, wire.Ready(), force)
	switch {
	case err == nil || errors.Is(err, dispatch.ErrDone):
		printRecord(rec, "")
		return exitDone, nil
	case errors.Is(ctx.Err(), context.Canceled): // stopped by a signal, which is not a failure
		printf(os.Stdout, "stopped before the check-in succeeded, attempts: %d\n", rec.Attempts)
		return exitDone, nil
	case !errors.Is(err, boot.ErrLocked): // otherwise the process that has the lock continues
		c.GiveUp(rec, err.Error())
	}
	return exitFailed, err
}

// printRecord prints it. A failure that was reported in this boot is final, so the
// unit must not be restarted.
func printRecord(rec boot.CheckIn, already string) {
	if rec.State == boot.Failed {
		printf(os.Stdout, "not checked in: ProvisioningFailed was reported in this boot; use --force to check in anyway\n")
		return
	}
	printf(os.Stdout, "%schecked in: wireserver %s (%s), via %s, at attempt %d, %d ms after boot\n",
		already, rec.WireServer, rec.Source, rec.Via, rec.Attempts, rec.AfterBootMS)
}

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
