package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/netip"
	"os"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
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
		return onAzure(*timeout, func(ctx context.Context, c *dispatch.CheckIn) (int, error) {
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
