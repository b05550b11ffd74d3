package main

import (
	"flag"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/status"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// printStatus prints the status of this boot's check-in and of the nameservers. Any user
// may run it.
func printStatus(flags *flag.FlagSet) func() (int, error) {
	asJSON := flags.Bool("json", false, "print JSON, docs/schema/status.json")
	return func() (int, error) {
		ctx, stop, b := openBus()
		defer stop()
		s := status.Of(machine.Gather(ctx, sources(b, "")))
		if err := show(*asJSON, s, s.Print); err != nil {
			return exitFailed, err
		}
		switch {
		case !s.Azure && len(s.NotRead) == 0:
			return exitNotAzure, nil
		case !s.Ready():
			return exitFailed, nil
		}
		return exitDone, nil
	}
}
