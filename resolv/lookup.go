package resolv

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/godbus/dbus/v5"
)

// Found is the result of resolving a name with resolved.
type Found struct {
	Addrs []netip.Addr
	// Error is the name of the D-Bus error if a nameserver answered, but without
	// an address: "org.freedesktop.resolve1.DnsError.NXDOMAIN".
	Error string
}

// LookUp resolves a name with resolved, bypassing its cache (since systemd 248). An
// answer without an address is not an error. It starts no service.
func LookUp(ctx context.Context, conn *dbus.Conn, name string) (Found, error) {
	const noCache = uint64(1) << 12 // SD_RESOLVED_NO_CACHE
	var records []struct {
		Ifindex int32
		Family  int32
		Addr    []byte
	}
	var canonical string
	var flags uint64
	// on any interface, of any address family
	err := conn.Object(busName, managerPath).CallWithContext(ctx, manager+".ResolveHostname", dbus.FlagNoAutoStart,
		int32(0), name, int32(0), noCache).Store(&records, &canonical, &flags)
	switch e, ok := errors.AsType[dbus.Error](err); {
	case e.Name == busName+".DnsError.NXDOMAIN", e.Name == busName+".NoSuchRR":
		return Found{Error: e.Name}, nil
	case ok:
		return Found{}, fmt.Errorf("%w (%s)", err, e.Name)
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
