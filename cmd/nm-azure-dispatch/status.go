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
		m := snapshot(machine.Options{})
		s := status.Of(m)
		return show(m, m.Ready(), *asJSON, s, s.Print)
	}
}
