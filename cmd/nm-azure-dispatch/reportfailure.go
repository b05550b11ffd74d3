package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
)

// maxReason is what wire sends of a reason, in characters.
const maxReason = 512

// reportFailure tells Azure that provisioning failed. It is for an initrd and
// for emergency.target: it asks neither NetworkManager nor the bus, and goes to
// the constant address.
func reportFailure(args []string) int {
	flags := flag.NewFlagSet("report-failure", flag.ContinueOnError)
	reason := flags.String("reason", "", "")
	timeout := flags.Duration("timeout", defaultTimeout, "")
	if ok, status := parse(flags, args); !ok {
		return status
	}
	if *reason == "" {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: report-failure: --reason is empty, want a text of at most %d characters\n", maxReason)
		return exitUsage
	}
	if !timeoutInRange("report-failure", *timeout) {
		return exitUsage
	}
	if n := utf8.RuneCountInString(*reason); n > maxReason {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: report-failure: --reason is %d characters long, only the first %d are sent\n", n, maxReason)
	}
	root := os.DirFS("/")
	if ok, why := azure.Detect(root); !ok {
		fmt.Printf("nothing to do: this machine is not Azure (%s)\n", why)
		return exitDone
	}
	if !asRoot("report-failure") {
		return exitFailed
	}

	return withCheckIn(root, *timeout, func(ctx context.Context, c *dispatch.CheckIn) int {
		rec, err := c.Fail(ctx, dispatch.Constant("", ""), *reason)
		switch {
		case errors.Is(err, dispatch.ErrReady):
			say(os.Stderr, "nm-azure-dispatch: report-failure: refused: %v\n", err)
			return exitFailed
		case err != nil:
			c.GiveUp(rec, err)
			say(os.Stderr, "nm-azure-dispatch: report-failure: %v\n", err)
			return exitFailed
		}
		say(os.Stdout, "reported ProvisioningFailed to %s, via %s, %d attempts\n", rec.WireServer, rec.Via, rec.Attempts)
		return exitDone
	})
}

// timeoutInRange says what is wrong with a --timeout, if anything is.
func timeoutInRange(command string, d time.Duration) bool {
	if d > 0 && d <= maxTimeout {
		return true
	}
	fmt.Fprintf(os.Stderr, "nm-azure-dispatch: %s: --timeout %v is out of range: more than 0, at most %v\n", command, d, maxTimeout)
	return false
}

// asRoot says so if the user is not root: the WireServer's firewall rules and
// the records are for root alone.
func asRoot(command string) bool {
	if os.Geteuid() == 0 {
		return true
	}
	fmt.Fprintf(os.Stderr, "nm-azure-dispatch: %s: only root can do that: use sudo\n", command)
	return false
}
