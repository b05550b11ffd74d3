package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const (
	defaultTimeout = 5 * time.Minute
	maxTimeout     = 24 * time.Hour
	leasesLimit    = 5 * time.Second // to read all leases; then the constant has to do
)

// checkIn is the check-in by hand or from nm-azure-checkin.service.
func checkIn(args []string) int {
	flags := flag.NewFlagSet("check-in", flag.ContinueOnError)
	force := flags.Bool("force", false, "")
	timeout := timeoutFlag(flags)
	var server netip.Addr
	flags.Func("server", "", func(s string) (err error) {
		server, err = operatorAddr(s)
		return err
	})
	if ok, status := parse(flags, args); !ok {
		return status
	}
	root := os.DirFS("/")
	if !server.IsValid() {
		ok, why, err := azure.Detect(root)
		if err != nil {
			fmt.Fprintf(os.Stderr, "nm-azure-dispatch: check-in: %v; --server %s checks in all the same\n", err, wire.DefaultAddr)
			return exitFailed
		}
		if !ok {
			fmt.Printf("nothing to do: this machine is not Azure (%s)\n", why)
			return exitDone
		}
	}
	if !asRoot("check-in") {
		return exitFailed
	}

	return withCheckIn(root, *timeout, func(ctx context.Context, c *dispatch.CheckIn) int {
		rec, done := c.Done()
		if done && !*force {
			return report(rec, "already ")
		}
		t := dispatch.Target{Server: server, Source: boot.FromOperator}
		if !server.IsValid() {
			t = leaseTarget(ctx, root)
		}
		rec, err := c.Follow(ctx, t, *force)
		if err != nil {
			if !errors.Is(err, boot.ErrLocked) { // the run that has the lock goes on
				c.GiveUp(rec, err)
			}
			say(os.Stderr, "nm-azure-dispatch: check-in: %v\n", err)
			return exitFailed
		}
		return report(rec, "")
	})
}

// report says how the record stands. A failure that was reported in this boot is
// final, and no reason for a unit to try again.
func report(rec boot.CheckIn, already string) int {
	if rec.State == boot.Failed {
		say(os.Stdout, "not checked in: in this boot ProvisioningFailed was reported; --force checks in all the same\n")
		return exitDone
	}
	say(os.Stdout, "%schecked in: wireserver %s (%s), via %s, %d attempts, %d ms after boot\n",
		already, rec.WireServer, rec.Source, rec.Via, rec.Attempts, rec.AfterBootMS)
	return exitDone
}

// leaseTarget reads the lease to check in by, or takes the constant.
func leaseTarget(ctx context.Context, root fs.FS) dispatch.Target {
	limit, cancel := context.WithTimeoutCause(ctx, leasesLimit, fmt.Errorf("no answer within %v", leasesLimit))
	defer cancel()
	conn, err := sysbus.Connect(limit, limit)
	if err != nil {
		return dispatch.DefaultTarget("", "the lease cannot be read: "+err.Error())
	}
	devices, err := nm.NewClient(conn).Devices(limit)
	if err != nil {
		return dispatch.DefaultTarget("", "the lease cannot be read: "+err.Error())
	}
	best, ok := dispatch.BestLease(devices, link.DefaultRoutes(root))
	if !ok {
		return dispatch.DefaultTarget("", "there is no DHCPv4 lease")
	}
	return dispatch.TargetOf(best.Interface, *best.Lease, ownAddrs())
}

// operatorAddr reads an address that the operator names: any IPv4 address of
// one host.
func operatorAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err == nil {
		err = wire.CheckTarget(a)
	}
	if err != nil {
		return netip.Addr{}, errors.New("want the IPv4 address of one host, such as 168.63.129.16")
	}
	return a, nil
}
