package main

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/kvp"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// stateDir holds the records.
const stateDir = "/run/nm-azure-dispatch"

// newEnv returns what the parts of a run share; the bus is closed when ctx ends.
// Without a boot ID, nothing counts as already done.
func newEnv(ctx context.Context, root fs.FS, log func(journal.Kind, ...slog.Attr)) *dispatch.Env {
	id, err := boot.ID(root)
	if err != nil {
		log(journal.RecordFailed, slog.Any("error", err))
	}
	return &dispatch.Env{
		Store:         boot.Store{Dir: stateDir, BootID: id},
		Log:           log,
		Connect:       func(limit context.Context) (*dispatch.Bus, error) { return connect(ctx, limit) },
		Index:         func(iface string) (int, error) { return link.Index(root, iface) },
		DefaultRoutes: func() []string { return link.DefaultRoutes(root) },
		OwnAddrs:      ownAddrs,
		Exists:        func(ifindex int) bool { return link.Exists(root, ifindex) },
	}
}

// newCheckIn returns a check-in that uses the WireServer's client and the records.
func newCheckIn(root fs.FS, env *dispatch.Env) *dispatch.CheckIn {
	_, notInitrd := fs.Stat(root, "etc/initrd-release") // os-release(5)
	host := &kvp.Reporter{
		Path: kvp.Path, Agent: userAgent(), BootID: env.Store.BootID,
		Booted: time.Now().Add(-boot.SinceBoot()), VMID: kvp.VMID(root),
	}
	return &dispatch.CheckIn{
		Env:       env,
		UserAgent: userAgent(),
		Initrd:    notInitrd == nil,
		Report: func(ctx context.Context, r *wire.Reporter, h wire.Health) (wire.Outcome, error) {
			return r.Report(ctx, h)
		},
		TellHost: host.Report,
	}
}

func userAgent() string { return "nm-azure-dispatch/" + version }

// connect opens the bus for the clients of NetworkManager and systemd-resolved.
func connect(ctx, limit context.Context) (*dispatch.Bus, error) {
	conn, err := sysbus.Connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	manager := resolv.NewManager(conn)
	return &dispatch.Bus{
		NetworkManager: func(ctx context.Context) (nm.Snapshot, error) { return nm.Read(ctx, conn) },
		LinkState:      manager.State,
		SetNameservers: manager.SetNameservers,
		SetDomains:     manager.SetDomains,
		FlushCaches:    manager.FlushCaches,
		Probe:          resolv.Probe,
		StartUnit: func(ctx context.Context, unit string) error {
			return sysbus.StartUnit(ctx, conn, unit)
		},
	}, nil
}

// ownAddrs returns the addresses of all interfaces. If the kernel does not answer
// there are none, and only systemd-resolved checks for the machine's own addresses.
func ownAddrs() []netip.Addr {
	all, _ := net.InterfaceAddrs()
	var addrs []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			addrs = append(addrs, p.Addr())
		}
	}
	return addrs
}
