package live

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/godbus/dbus/v5"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Names on the bus, org.freedesktop.resolve1(5).
const (
	resolvedName    = "org.freedesktop.resolve1"
	resolvedPath    = "/org/freedesktop/resolve1"
	resolvedManager = "org.freedesktop.resolve1.Manager"
	resolveHostname = resolvedManager + ".ResolveHostname"
	invalidArgs     = "org.freedesktop.DBus.Error.InvalidArgs"
)

// noCache is SD_RESOLVED_NO_CACHE, since systemd 248.
const noCache = uint64(1) << 12

// Resolved is what systemd-resolved says, of all links and of one.
type Resolved struct {
	ResolvConf string // ResolvConfMode: "stub", "uplink", "static", "missing", "foreign"; "" before systemd 254
	Stub       string // DNSStubListener: "yes", "no", "udp", "tcp"
	State      resolv.State
}

// ReadResolved reads it for the link of an index. The error is ErrNotRunning if
// it does not run, whether or not it could be started.
func ReadResolved(ctx context.Context, conn *dbus.Conn, ifindex int) (Resolved, error) {
	if err := owned(ctx, conn, resolvedName); err != nil {
		return Resolved{}, err
	}
	var props map[string]dbus.Variant
	if err := call(ctx, conn, resolvedName, resolvedPath, propertiesAll, resolvedManager).Store(&props); err != nil {
		return Resolved{}, fmt.Errorf("systemd-resolved does not answer: %w", cause(ctx, err))
	}
	r := Resolved{ResolvConf: get[string](props, "ResolvConfMode"), Stub: get[string](props, "DNSStubListener")}
	var err error
	// It has answered a moment ago, so this does not start it.
	if r.State, err = resolv.NewManager(conn).State(ctx, ifindex); err != nil {
		return Resolved{}, cause(ctx, err)
	}
	return r, nil
}

// Answer is what resolved found for a name.
type Answer struct {
	Addrs []netip.Addr
	// Error is the name of the D-Bus error if a nameserver answered, but without
	// an address: "org.freedesktop.resolve1.DnsError.NXDOMAIN".
	Error string
}

// LookUp resolves a name by way of resolved, not from its cache. An answer
// without an address is no error.
func LookUp(ctx context.Context, conn *dbus.Conn, name string) (Answer, error) {
	if err := owned(ctx, conn, resolvedName); err != nil {
		return Answer{}, err
	}
	type found struct {
		Ifindex int32
		Family  int32
		Addr    []byte
	}
	var list []found
	var canonical string
	var flags uint64
	// Any interface, any address family.
	c := call(ctx, conn, resolvedName, resolvedPath, resolveHostname, int32(0), name, int32(0), noCache)
	if errorName(c.Err) == invalidArgs {
		c = call(ctx, conn, resolvedName, resolvedPath, resolveHostname, int32(0), name, int32(0), uint64(0))
	}
	if err := c.Store(&list, &canonical, &flags); err != nil {
		switch n := errorName(err); n {
		case resolvedName + ".DnsError.NXDOMAIN", resolvedName + ".NoSuchRR":
			return Answer{Error: n}, nil
		case "":
			return Answer{}, cause(ctx, err)
		default:
			return Answer{}, fmt.Errorf("%w (%s)", err, n)
		}
	}
	var a Answer
	for _, f := range list {
		if addr, ok := netip.AddrFromSlice(f.Addr); ok {
			a.Addrs = append(a.Addrs, addr)
		}
	}
	return a, nil
}

func errorName(err error) string {
	if e, ok := errors.AsType[dbus.Error](err); ok {
		return e.Name
	}
	return ""
}
