package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/failure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// reportFailure reports to Azure that provisioning failed. It is for an initrd and
// for emergency.target: it uses neither NetworkManager nor the bus, and sends to
// the default address.
func reportFailure(args []string) int {
	flags := flag.NewFlagSet("report-failure", flag.ContinueOnError)
	reason := flags.String("reason", "", "")
	failedUnits := flags.Bool("failed-units", false, "")
	timeout := timeoutFlag(flags, defaultTimeout)
	if ok, status := parse(flags, args); !ok {
		return status
	}
	if (strings.TrimSpace(*reason) == "") != *failedUnits {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: report-failure: want either --failed-units or --reason with a text of at most %d characters\n", wire.MaxDescription)
		return exitUsage
	}
	if n := utf8.RuneCountInString(*reason); n > wire.MaxDescription {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: report-failure: --reason is %d characters long, only the first %d are sent\n", n, wire.MaxDescription)
	}
	root := os.DirFS("/")
	ok, why, err := azure.Detect(root)
	if err != nil {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: report-failure: %v\n", err)
		return exitFailed
	}
	if !ok {
		fmt.Printf("nothing to do: this machine is not Azure (%s)\n", why)
		return exitDone
	}
	if !asRoot("report-failure") {
		return exitFailed
	}

	return withCheckIn(root, *timeout, func(ctx context.Context, c *dispatch.CheckIn) int {
		if *failedUnits {
			*reason = failure.Describe(ctx, wire.MaxDescription, boot.SinceBoot())
		}
		rec, err := c.Fail(ctx, dispatch.DefaultTarget("", ""), *reason)
		switch {
		case errors.Is(err, dispatch.ErrReady):
			printf(os.Stderr, "nm-azure-dispatch: report-failure: refused: %v\n", err)
			return exitFailed
		case errors.Is(err, dispatch.ErrReported):
			printf(os.Stdout, "nothing to do: %v, at %s\n", err, rec.UpdatedAt.Format(time.RFC3339))
			return exitDone
		case err != nil:
			c.GiveUp(rec, err.Error())
			printf(os.Stderr, "nm-azure-dispatch: report-failure: %v\n", err)
			return exitFailed
		}
		printf(os.Stdout, "reported ProvisioningFailed to %s, via %s, at attempt %d\n", rec.WireServer, rec.Via, rec.Attempts)
		return exitDone
	})
}

// timeoutFlag defines --timeout, with a default. It must be more than 0 and at
// most maxTimeout.
func timeoutFlag(flags *flag.FlagSet, timeout time.Duration) *time.Duration {
	flags.Func("timeout", "", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 || d > maxTimeout {
			return fmt.Errorf("want a duration such as 90s or 20m, more than 0 and at most %vh", maxTimeout.Hours())
		}
		timeout = d
		return nil
	})
	return &timeout
}

// asRoot reports whether the user is root, and prints an error if not: firewall
// rules for the WireServer and the records are for root only.
func asRoot(command string) bool {
	if os.Geteuid() == 0 {
		return true
	}
	fmt.Fprintf(os.Stderr, "nm-azure-dispatch: %s: only root can do that: use sudo\n", command)
	return false
}
