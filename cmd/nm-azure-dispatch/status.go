package main

import (
	"flag"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/status"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// defineStatus defines status, which any user may run.
func defineStatus(flags *flag.FlagSet) func() (int, error) {
	asJSON := flags.Bool("json", false, "print JSON, docs/schema/status.json")
	return func() (int, error) {
		m := snapshot(machine.Options{})
		s := status.Of(m)
		return show(m, m.Ready(), *asJSON, s, s.Print)
	}
}
