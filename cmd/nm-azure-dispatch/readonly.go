package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/status"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
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

// defineDoctor defines doctor, which checks everything between this machine and Azure, and
// changes nothing.
func defineDoctor(flags *flag.FlagSet) func() (int, error) {
	o := machine.Options{Network: true, Units: doctor.Agents()}
	asJSON := flags.Bool("json", false, "print JSON, docs/schema/doctor.json")
	flags.Func("name", "resolve `NAME`, by default the domain of the lease, or azure.microsoft.com", func(s string) error {
		if _, ok := dns.IsDomainName(s); !ok || s == "" {
			return errors.New("want a domain name")
		}
		o.Name = s
		return nil
	})
	flags.Func("interface", "check `INTERFACE`, by default the primary one, whose lease has the route to the WireServer", func(s string) error {
		o.Interface = s
		return nm.CheckInterface(s)
	})
	return func() (int, error) {
		m := snapshot(o)
		r := doctor.Judge(m)
		return show(m, r.FirstFailure == nil, *asJSON, r, r.Print)
	}
}

// snapshot reads this machine, until SIGTERM or SIGINT.
func snapshot(o machine.Options) *machine.Snapshot {
	ctx, stop := untilStopped()
	defer stop()
	o.Root, o.Records, o.Own = os.DirFS("/"), stateDir, ownAddrs()
	o.Connect, o.UserAgent = sysbus.Connect, userAgent()
	return machine.Read(ctx, o)
}

// show writes the result to standard output, and returns the exit status of a command
// that found the machine well, or not.
func show(m *machine.Snapshot, well, asJSON bool, v any, print func(io.Writer, bool) error) (int, error) {
	var err error
	if asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(v)
	} else {
		err = print(os.Stdout, term.Colours(os.Stdout, os.Getenv))
	}
	switch {
	case err != nil:
		return exitFailed, err
	case !m.Platform.Azure && m.Platform.Err == nil:
		return exitNotAzure, nil
	case !well:
		return exitFailed, nil
	}
	return exitDone, nil
}
