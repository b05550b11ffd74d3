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
		Exists: func(ifindex int) bool {
			_, err := net.InterfaceByIndex(ifindex)
			return err == nil
		},
	}
}

// newCheckIn returns a check-in that uses the WireServer's client and the records.
func newCheckIn(root fs.FS, env *dispatch.Env) *dispatch.CheckIn {
	return &dispatch.CheckIn{
		Env:       env,
		UserAgent: "nm-azure-dispatch/" + version,
		Initrd:    inInitrd(root),
		Report: func(ctx context.Context, r *wire.Reporter, h wire.Health) (wire.Outcome, error) {
			return r.Report(ctx, h)
		},
		TellHost: tellHost(root, env.Store.BootID),
	}
}

// inInitrd reports whether this is an initrd, os-release(5).
func inInitrd(root fs.FS) bool {
	_, err := fs.Stat(root, "etc/initrd-release")
	return err == nil
}

// tellHost returns a function that writes the record for Azure's host.
func tellHost(root fs.FS, bootID string) func(string) {
	r := &kvp.Reporter{
		Path: kvp.Path, Agent: "nm-azure-dispatch/" + version, BootID: bootID,
		Booted: time.Now().Add(-boot.SinceBoot()), VMID: kvp.VMID(root),
	}
	return r.Report
}

// connect opens the bus for the clients of NetworkManager and systemd-resolved.
func connect(ctx, limit context.Context) (*dispatch.Bus, error) {
	conn, err := sysbus.Connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	client, manager := nm.NewClient(conn), resolv.NewManager(conn)
	return &dispatch.Bus{
		Device:         client.Device,
		DNSConfig:      client.DNSConfig,
		IP4DNSConfig:   client.IP4DNSConfig,
		GlobalDNS:      client.GlobalDNS,
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
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr())
		}
	}
	return out
}
