package resolv

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/godbus/dbus/v5"
)

// noCache is SD_RESOLVED_NO_CACHE, since systemd 248.
const noCache = uint64(1) << 12

// Found is the result of resolving a name with resolved.
type Found struct {
	Addrs []netip.Addr
	// Error is the name of the D-Bus error if a nameserver answered, but without
	// an address: "org.freedesktop.resolve1.DnsError.NXDOMAIN".
	Error string
}

// LookUp resolves a name with resolved, bypassing its cache. An answer without an
// address is not an error. It starts no service.
func LookUp(ctx context.Context, conn *dbus.Conn, name string) (Found, error) {
	var records []struct {
		Ifindex int32
		Family  int32
		Addr    []byte
	}
	var canonical string
	var flags uint64
	resolve := func(flags uint64) (*dbus.Call, string) { // on any interface, of any address family
		c := conn.Object(busName, managerPath).CallWithContext(ctx, manager+".ResolveHostname", dbus.FlagNoAutoStart, int32(0), name, int32(0), flags)
		e, _ := errors.AsType[dbus.Error](c.Err)
		return c, e.Name
	}
	c, failed := resolve(noCache)
	if failed == "org.freedesktop.DBus.Error.InvalidArgs" {
		c, failed = resolve(0)
	}
	err := c.Store(&records, &canonical, &flags)
	switch {
	case failed == busName+".DnsError.NXDOMAIN", failed == busName+".NoSuchRR":
		return Found{Error: failed}, nil
	case failed != "":
		return Found{}, fmt.Errorf("%w (%s)", err, failed)
	case err != nil && ctx.Err() != nil:
		return Found{}, context.Cause(ctx)
	}
	var f Found
	for _, r := range records {
		if addr, ok := netip.AddrFromSlice(r.Addr); ok {
			f.Addrs = append(f.Addrs, addr)
		}
	}
	return f, err
}
