package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// runDoctor checks everything between this machine and Azure, and changes nothing.
func runDoctor(args []string) int {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	var name string
	flags.Func("name", "", func(s string) error {
		if _, ok := dns.IsDomainName(s); !ok || s == "" {
			return errors.New("want a domain name")
		}
		name = s
		return nil
	})
	iface := ""
	flags.Func("interface", "", func(s string) error {
		iface = s
		return nm.CheckInterface(s)
	})
	if ok, status := parse(flags, args); !ok {
		return status
	}
	ctx, stop, b := openBus()
	defer stop()
	m := machine.Gather(ctx, sources(b, iface), doctor.Agents()...)
	m.Probe(ctx, prober(b, name))
	r := doctor.NewReport(doctor.Judge(m))
	if err := show(*asJSON, r, r.Print); err != nil {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: doctor: %v\n", err)
		return exitFailed
	}
	switch {
	case !m.Platform.Azure && m.Platform.Err == nil:
		return exitNotAzure
	case r.FirstFailure != nil:
		return exitFailed
	}
	return exitDone
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
