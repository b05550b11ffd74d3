package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// runDoctor checks everything between this machine and Azure, and changes nothing.
func runDoctor(flags *flag.FlagSet) func() (int, error) {
	asJSON := flags.Bool("json", false, "print JSON, docs/schema/doctor.json")
	name, iface := "", ""
	flags.Func("name", "resolve `NAME`, by default the domain of the lease, or azure.microsoft.com", func(s string) error {
		if _, ok := dns.IsDomainName(s); !ok || s == "" {
			return errors.New("want a domain name")
		}
		name = s
		return nil
	})
	flags.Func("interface", "check `INTERFACE`, by default that of the default route", func(s string) error {
		iface = s
		return nm.CheckInterface(s)
	})
	return func() (int, error) {
		ctx, stop, b := openBus()
		defer stop()
		m := machine.Gather(ctx, sources(b, iface), doctor.Agents()...)
		m.Probe(ctx, prober(b, name))
		r := doctor.NewReport(doctor.Judge(m))
		if err := show(*asJSON, r, r.Print); err != nil {
			return exitFailed, err
		}
		switch {
		case !m.Platform.Azure && m.Platform.Err == nil:
			return exitNotAzure, nil
		case r.FirstFailure != nil:
			return exitFailed, nil
		}
		return exitDone, nil
	}
}

// show writes a result to standard output.
func show(asJSON bool, v any, print func(io.Writer, bool) error) error {
	if !asJSON {
		return print(os.Stdout, term.Colours(os.Stdout, os.Getenv))
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
