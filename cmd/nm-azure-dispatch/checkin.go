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
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const (
	defaultTimeout = 5 * time.Minute // of report-failure
	noTimeout      = 0               // of check-in: it runs until it has succeeded or is stopped
	maxTimeout     = 24 * time.Hour
)

// checkIn is the command check-in, which nm-azure-checkin.service runs.
func checkIn(args []string) int {
	flags := flag.NewFlagSet("check-in", flag.ContinueOnError)
	force := flags.Bool("force", false, "")
	timeout := timeoutFlag(flags, noTimeout)
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
			fmt.Fprintf(os.Stderr, "nm-azure-dispatch: check-in: %v; to check in anyway, use --server %s\n", err, wire.DefaultAddr)
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
		if server.IsValid() {
			return reportReady(ctx, c, root, dispatch.Target{Server: server, Source: boot.FromOperator}, *force)
		}
		dns := make(chan error, 1)
		go func() { dns <- (&dispatch.Nameservers{Env: c.Env}).Finish(ctx, waitingFor) }()
		status := reportReady(ctx, c, root, dispatch.Target{}, *force)
		if err := <-dns; err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			c.Log(journal.NameserversFailed, slog.Any("error", err))
			printf(os.Stderr, "nm-azure-dispatch: %v\n", err)
			return exitFailed
		}
		return status
	})
}

// waitingFor prints what the command waits for.
func waitingFor(err error) {
	printf(os.Stderr, "nm-azure-dispatch: check-in: still waiting: %v\n", err)
}

// reportReady checks in with the target, or the target of the lease if it is
// zero, and prints the result.
func reportReady(ctx context.Context, c *dispatch.CheckIn, root fs.FS, t dispatch.Target, force bool) int {
	rec, done := c.Done()
	if done && !force {
		return report(rec, "already ")
	}
	if !t.Server.IsValid() {
		t, c.NextTarget = followLeases(ctx, root)
	}
	rec, err := c.Follow(ctx, t, force)
	switch {
	case err == nil:
		return report(rec, "")
	case errors.Is(ctx.Err(), context.Canceled): // stopped by a signal, which is not a failure
		printf(os.Stdout, "stopped before the check-in succeeded, attempts: %d\n", rec.Attempts)
		return exitDone
	case !errors.Is(err, boot.ErrLocked): // otherwise the process that has the lock continues
		c.GiveUp(rec, err.Error())
	}
	printf(os.Stderr, "nm-azure-dispatch: check-in: %v\n", err)
	return exitFailed
}

// report prints the record and returns the exit status. A failure that was
// reported in this boot is final, so the unit must not be restarted.
func report(rec boot.CheckIn, already string) int {
	if rec.State == boot.Failed {
		printf(os.Stdout, "not checked in: ProvisioningFailed was reported in this boot; use --force to check in anyway\n")
		return exitDone
	}
	printf(os.Stdout, "%schecked in: wireserver %s (%s), via %s, at attempt %d, %d ms after boot\n",
		already, rec.WireServer, rec.Source, rec.Via, rec.Attempts, rec.AfterBootMS)
	return exitDone
}

// operatorAddr parses the argument of --server: any IPv4 unicast address.
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
