package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// exitNotAzure is that of status and doctor, which have nothing to say then.
const exitNotAzure = 3

// busLimit bounds the connecting, of status and doctor.
const busLimit = time.Second

// lookAround returns a context that a signal ends, and a connection to the bus
// that is opened when it is first asked for.
func lookAround() (context.Context, context.CancelFunc, bus) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	return ctx, stop, sync.OnceValues(func() (*dbus.Conn, error) {
		limit, cancel := context.WithTimeoutCause(ctx, busLimit, fmt.Errorf("no answer within %v", busLimit))
		defer cancel()
		return sysbus.Connect(ctx, limit)
	})
}

type bus func() (*dbus.Conn, error)

// over returns a func that reads something over the connection, if there is one.
func over[T any](b bus, read func(context.Context, *dbus.Conn) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		conn, err := b()
		if err != nil {
			var none T
			return none, err
		}
		return read(ctx, conn)
	}
}

// sources are the machine's own.
func sources(b bus, iface string) machine.Sources {
	return machine.Sources{
		Root: os.DirFS("/"), Interface: iface, User: os.Geteuid(), Records: stateDir, Own: ownAddrs, Label: machine.Label,
		NetworkManager: over(b, nm.ReadSnapshot), Networkd: over(b, networkd.Describe), Resolved: over(b, resolv.ReadSnapshot),
		Units: func(ctx context.Context, names []string) (map[string]machine.Unit, error) {
			return over(b, func(ctx context.Context, conn *dbus.Conn) (map[string]machine.Unit, error) {
				return machine.ReadUnits(ctx, conn, names)
			})(ctx)
		},
	}
}

// prober asks on the network that the machine is on.
func prober(b bus, name string) machine.Prober {
	return machine.Prober{
		Name: name, Route: netlink.Lookup, Rules: netlink.Rules, Dial: machine.DialTCP, Small: machine.AskSmall,
		GoalState: func(ctx context.Context, server netip.Addr) (wire.GoalState, error) {
			r := &wire.Reporter{Server: server, UserAgent: "nm-azure-dispatch/" + version}
			return r.FetchGoalState(ctx)
		},
		Ask: func(ctx context.Context, server netip.Addr, name string) (resolv.Answer, error) {
			return resolv.Ask(ctx, server, name, dns.TypeA)
		},
		LookUp: func(ctx context.Context, name string) (resolv.Found, error) {
			return over(b, func(ctx context.Context, conn *dbus.Conn) (resolv.Found, error) {
				return resolv.LookUp(ctx, conn, name)
			})(ctx)
		},
	}
}
