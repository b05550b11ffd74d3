package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// bus opens the one connection when it is first asked for.
type bus struct{ connect func() (*dbus.Conn, error) }

func lazyBus(ctx context.Context) bus {
	return bus{sync.OnceValues(func() (*dbus.Conn, error) {
		limit, cancel := context.WithTimeoutCause(ctx, busLimit, fmt.Errorf("no answer within %v", busLimit))
		defer cancel()
		return sysbus.Connect(ctx, limit)
	})}
}

func (b bus) networkManager(ctx context.Context) (live.NetworkManager, error) {
	return over(b, func(conn *dbus.Conn) (live.NetworkManager, error) { return live.ReadNetworkManager(ctx, conn) })
}

func (b bus) resolved(ctx context.Context, ifindex int) (live.Resolved, error) {
	return over(b, func(conn *dbus.Conn) (live.Resolved, error) { return live.ReadResolved(ctx, conn, ifindex) })
}

func (b bus) units(ctx context.Context, names []string) (map[string]live.Unit, error) {
	return over(b, func(conn *dbus.Conn) (map[string]live.Unit, error) { return live.ReadUnits(ctx, conn, names) })
}

func (b bus) lookUp(ctx context.Context, name string) (live.Answer, error) {
	return over(b, func(conn *dbus.Conn) (live.Answer, error) { return live.LookUp(ctx, conn, name) })
}

// over reads something over the connection, if there is one.
func over[T any](b bus, read func(*dbus.Conn) (T, error)) (T, error) {
	conn, err := b.connect()
	if err != nil {
		var none T
		return none, err
	}
	return read(conn)
}

// label reads a file's SELinux label.
func label(name string) string {
	var buf [256]byte
	n, err := unix.Getxattr(name, "security.selinux", buf[:])
	if err != nil {
		return ""
	}
	return string(bytes.TrimRight(buf[:n], "\x00"))
}

// source connects a UDP socket, which sends nothing.
func source(ctx context.Context, to netip.Addr) (netip.Addr, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp4", netip.AddrPortFrom(to, 80).String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}

func dialTCP(ctx context.Context, to netip.AddrPort) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", to.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

func fetchGoalState(ctx context.Context, server netip.Addr) (wire.GoalState, error) {
	r := &wire.Reporter{Server: server, UserAgent: "nm-azure-dispatch/" + version}
	return r.FetchGoalState(ctx)
}
