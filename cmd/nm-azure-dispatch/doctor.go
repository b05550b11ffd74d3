package main

import (
	"errors"
	"flag"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

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
