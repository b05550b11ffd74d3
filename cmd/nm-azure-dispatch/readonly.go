package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"
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

// busLimit bounds connecting to the bus, for status and doctor.
const busLimit = time.Second

// openBus returns a context that SIGTERM and SIGINT end, and a function that
// opens the bus at its first call.
func openBus() (context.Context, context.CancelFunc, bus) {
	ctx, stop := untilStopped()
	return ctx, stop, sync.OnceValues(func() (*dbus.Conn, error) {
		limit, cancel := context.WithTimeoutCause(ctx, busLimit, fmt.Errorf("no answer within %v", busLimit))
		defer cancel()
		return sysbus.Connect(ctx, limit)
	})
}

// bus returns the connection to the system bus.
type bus func() (*dbus.Conn, error)

// withBus returns a function that calls read with the connection.
func withBus[T any](b bus, read func(context.Context, *dbus.Conn) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		conn, err := b()
		if err != nil {
			var none T
			return none, err
		}
		return read(ctx, conn)
	}
}

// sources returns the sources of a snapshot of this machine.
func sources(b bus, iface string) machine.Sources {
	return machine.Sources{
		Root: os.DirFS("/"), Interface: iface, User: os.Geteuid(), Records: stateDir, Own: ownAddrs, Label: machine.Label,
		NetworkManager: withBus(b, nm.ReadSnapshot), Networkd: withBus(b, networkd.Describe), Resolved: withBus(b, resolv.ReadSnapshot),
		Units: func(ctx context.Context, names []string) (map[string]machine.Unit, error) {
			return withBus(b, func(ctx context.Context, conn *dbus.Conn) (map[string]machine.Unit, error) {
				return machine.ReadUnits(ctx, conn, names)
			})(ctx)
		},
	}
}

// prober returns what queries the network for doctor.
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
			return withBus(b, func(ctx context.Context, conn *dbus.Conn) (resolv.Found, error) {
				return resolv.LookUp(ctx, conn, name)
			})(ctx)
		},
	}
}
