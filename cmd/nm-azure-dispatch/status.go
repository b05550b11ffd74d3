package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/status"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// printStatus prints the status of this boot's check-in and of the nameservers. Any user
// may run it.
func printStatus(args []string) int {
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	if ok, status := parse(flags, args); !ok {
		return status
	}
	ctx, stop, b := openBus()
	defer stop()
	s := status.Of(machine.Gather(ctx, sources(b, "")))
	if err := show(*asJSON, s, s.Print); err != nil {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: status: %v\n", err)
		return exitFailed
	}
	switch {
	case !s.Azure && len(s.NotRead) == 0:
		return exitNotAzure
	case !s.Ready():
		return exitFailed
	}
	return exitDone
}
