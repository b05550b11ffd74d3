package resolv

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/godbus/dbus/v5"
)

const (
	linkInterface   = "org.freedesktop.resolve1.Link"
	resolveHostname = manager + ".ResolveHostname"
	errInvalidArgs  = "org.freedesktop.DBus.Error.InvalidArgs"
	noCache         = uint64(1) << 12 // SD_RESOLVED_NO_CACHE, since systemd 248
)

// Snapshot is the state of resolved and its links at one moment.
type Snapshot struct {
	ResolvConf string // ResolvConfMode: "stub", "uplink", "static", "missing", "foreign"; "" before systemd 254
	Stub       string // DNSStubListener: "yes", "no", "udp", "tcp"
	Global     []Server
	Links      map[int]Link // by index: those with nameservers or domains
}

// Link is the state of one link in a snapshot.
type Link struct {
	State
	DNSSEC     string // "yes", "no", "allow-downgrade"
	DNSOverTLS string // "yes", "no", "opportunistic"
}

// Addrs returns the servers of the link and then the global ones, without duplicates.
func (s State) Addrs() []netip.Addr {
	var out []netip.Addr
	for _, srv := range slices.Concat(s.Nameservers, s.Global) {
		if !slices.Contains(out, srv.Addr) {
			out = append(out, srv.Addr)
		}
	}
	return out
}

// State returns the configuration of a link and the global one.
func (s Snapshot) State(ifindex int) State {
	state := s.Links[ifindex].State
	state.Global = s.Global
	return state
}

// ReadSnapshot reads a snapshot, in one round trip and one more per link with
// nameservers. It starts no service; the error is ErrNotRunning without resolved.
func ReadSnapshot(ctx context.Context, conn *dbus.Conn) (Snapshot, error) {
	var props map[string]dbus.Variant
	all := func(path dbus.ObjectPath, iface string) error {
		props = nil
		return conn.Object(busName, path).CallWithContext(ctx, propertiesAll, dbus.FlagNoAutoStart, iface).Store(&props)
	}
	if err := all(managerPath, manager); err != nil {
		return Snapshot{}, wrap(ctx, "read", 0, err)
	}
	s := Snapshot{ResolvConf: text(props, "ResolvConfMode"), Stub: text(props, "DNSStubListener"), Links: map[int]Link{}}
	for _, name := range []string{"DNS", "Domains"} {
		entries, _ := props[name].Value().([][]any)
		for _, e := range entries {
			index, _ := e[0].(int32)
			state, err := parseState(props, int(index))
			if err != nil {
				return Snapshot{}, fmt.Errorf("resolv: read: %w", err)
			}
			s.Global, state.Global = state.Global, nil
			if index > 0 {
				s.Links[int(index)] = Link{State: state}
			}
		}
	}
	for index, l := range s.Links {
		// The object's name is the index, its first digit escaped: "_312" is 12.
		if len(l.Nameservers) > 0 && all(dbus.ObjectPath(fmt.Sprintf("%s/link/_3%d", managerPath, index)), linkInterface) == nil {
			l.DNSSEC, l.DNSOverTLS = text(props, "DNSSEC"), text(props, "DNSOverTLS")
			s.Links[index] = l
		}
	}
	return s, nil
}

func text(props map[string]dbus.Variant, name string) string {
	s, _ := props[name].Value().(string)
	return s
}

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
	type record struct {
		Ifindex int32
		Family  int32
		Addr    []byte
	}
	var list []record
	var canonical string
	var flags uint64
	call := func(flags uint64) *dbus.Call { // on any interface, of any address family
		return conn.Object(busName, managerPath).CallWithContext(ctx, resolveHostname, dbus.FlagNoAutoStart, int32(0), name, int32(0), flags)
	}
	c := call(noCache)
	if e, ok := errors.AsType[dbus.Error](c.Err); ok && e.Name == errInvalidArgs {
		c = call(0)
	}
	err := c.Store(&list, &canonical, &flags)
	if e, ok := errors.AsType[dbus.Error](err); ok {
		switch e.Name {
		case busName + ".DnsError.NXDOMAIN", busName + ".NoSuchRR":
			return Found{Error: e.Name}, nil
		}
		return Found{}, fmt.Errorf("%w (%s)", err, e.Name)
	}
	if err != nil && ctx.Err() != nil {
		return Found{}, context.Cause(ctx)
	}
	var f Found
	for _, r := range list {
		if addr, ok := netip.AddrFromSlice(r.Addr); ok {
			f.Addrs = append(f.Addrs, addr)
		}
	}
	return f, err
}
