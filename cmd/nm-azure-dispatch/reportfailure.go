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

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/failure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// defineReportFailure defines report-failure. It is for an initrd and
// for emergency.target: it uses neither NetworkManager nor the bus, and sends to
// the default address.
func defineReportFailure(flags *flag.FlagSet) func() (int, error) {
	reason := flags.String("reason", "", fmt.Sprintf("the reason is `TEXT`, at most %d characters", wire.MaxDescription))
	failedUnits := flags.Bool("failed-units", false, "the reason is the failed units and what they logged last")
	timeout := timeoutFlag(flags, defaultTimeout, "give up after `DURATION`, such as 90s or 20m; by default 5m")
	return func() (int, error) {
		if (strings.TrimSpace(*reason) == "") != *failedUnits {
			return exitUsage, fmt.Errorf("want either --failed-units or --reason with a text of at most %d characters", wire.MaxDescription)
		}
		if n := utf8.RuneCountInString(*reason); n > wire.MaxDescription {
			fmt.Fprintf(os.Stderr, "nm-azure-dispatch: report-failure: --reason is %d characters long, only the first %d are sent\n",
				n, wire.MaxDescription)
		}
		return onAzure("", *timeout, func(ctx context.Context, c *dispatch.CheckIn) (int, error) {
			if *failedUnits {
				*reason = failure.Describe(ctx, wire.MaxDescription, boot.SinceBoot())
			}
			return reportFailed(ctx, c, *reason)
		})
	}
}

// reportFailed reports the failure to Azure and prints the result.
func reportFailed(ctx context.Context, c *dispatch.CheckIn, reason string) (int, error) {
	rec, err := c.Follow(ctx, dispatch.DefaultTarget("", ""), wire.ProvisioningFailed(reason), false)
	switch {
	case errors.Is(err, dispatch.ErrDone) && rec.State == boot.Ready:
		return exitFailed, errors.New("refused: this boot has already been reported as ready")
	case errors.Is(err, dispatch.ErrDone):
		printf(os.Stdout, "nothing to do: a failure was already reported to Azure in this boot, at %s\n", rec.UpdatedAt.Format(time.RFC3339))
		return exitDone, nil
	case err != nil:
		c.GiveUp(rec, err.Error())
		return exitFailed, err
	}
	printf(os.Stdout, "reported ProvisioningFailed to %s, via %s, at attempt %d\n", rec.WireServer, rec.Via, rec.Attempts)
	return exitDone, nil
}
