package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// exitNotAzure is that of status and doctor, which have nothing to say then.
const exitNotAzure = 3

// busLimit bounds the connecting, of status and doctor.
const busLimit = time.Second

// runDoctor looks at everything between this machine and Azure, and changes
// nothing.
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
	root := os.DirFS("/")
	iface := ""
	flags.Func("interface", "", func(s string) error {
		iface = s
		return nm.CheckInterface(s)
	})
	if ok, status := parse(flags, args); !ok {
		return status
	}
	if iface == "" {
		iface = doctor.PickInterface(root)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	id, _ := boot.ID(root) // the walk says so
	b := lazyBus(ctx)
	env := &doctor.Env{
		Root: root, Interface: iface, Name: name, User: os.Geteuid(), BootID: id, Records: stateDir, OwnAddrs: ownAddrs(),
		NetworkManager: b.networkManager, Resolved: b.resolved, Units: b.units, LookUp: b.lookUp,
		Label: label, Source: source, Dial: dialTCP, GoalState: fetchGoalState,
		Ask: func(ctx context.Context, server netip.Addr, name string) (resolv.Answer, error) {
			return resolv.Ask(ctx, server, name, dns.TypeA)
		},
	}
	r := doctor.NewReport(doctor.Run(ctx, env))
	if err := show(*asJSON, r, r.Print); err != nil {
		fmt.Fprintf(os.Stderr, "nm-azure-dispatch: doctor: %v\n", err)
		return exitFailed
	}
	switch {
	case r.Steps[0].Verdict == doctor.Fail:
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
