package resolv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Names on the bus, org.freedesktop.resolve1(5).
const (
	busName     = "org.freedesktop.resolve1"
	managerPath = "/org/freedesktop/resolve1"
	manager     = busName + ".Manager"
	link        = busName + ".Link"
	getAll      = "org.freedesktop.DBus.Properties.GetAll"
)

// start lets the bus start resolved, if it is enabled and not running.
const start = dbus.Flags(0)

// Manager calls systemd-resolved over one bus connection. Every method returns when
// its context ends.
type Manager struct {
	conn *dbus.Conn
}

// NewManager returns a Manager on a connected system bus.
func NewManager(conn *dbus.Conn) *Manager { return &Manager{conn: conn} }

// State reads the configuration of the link and the global one, in one round trip.
// For a link that resolved does not know, it returns no servers and no error.
func (m *Manager) State(ctx context.Context, ifindex int) (State, error) {
	s, err := m.read(ctx, start)
	return s.State(ifindex), err
}

// ReadSnapshot reads a snapshot, in one round trip and one more per link with
// nameservers. It starts no service; the error is ErrNotRunning without resolved.
func ReadSnapshot(ctx context.Context, conn *dbus.Conn) (Snapshot, error) {
	m := NewManager(conn)
	s, err := m.read(ctx, dbus.FlagNoAutoStart)
	for index, l := range s.Links {
		if len(l.Nameservers) == 0 {
			continue
		}
		// The object's name is the index, its first digit escaped: "_312" is 12.
		path := dbus.ObjectPath(fmt.Sprintf("%s/link/_3%d", managerPath, index))
		if props, err := m.properties(ctx, dbus.FlagNoAutoStart, path, link); err == nil {
			l.DNSSEC, l.DNSOverTLS = text(props, "DNSSEC"), text(props, "DNSOverTLS")
			s.Links[index] = l
		}
	}
	return s, err
}

// SetNameservers replaces the link's nameservers; an empty list removes them. If one
// address is invalid (0.0.0.0, ::, its own stub), resolved refuses the whole list and
// keeps the old one.
func (m *Manager) SetNameservers(ctx context.Context, ifindex int, servers []netip.Addr) error {
	type address struct {
		Family int32
		Addr   []byte
	}
	list := make([]address, len(servers))
	for i, a := range servers {
		list[i] = address{Family: 2, Addr: a.AsSlice()} // AF_INET
		if a.Is6() {
			list[i].Family = 10 // AF_INET6
		}
	}
	return m.call(ctx, "set nameservers", start, "SetLinkDNS", int32(ifindex), list)
}

// SetDomains replaces the link's domains by these search domains; an empty list
// removes them.
func (m *Manager) SetDomains(ctx context.Context, ifindex int, names []string) error {
	list := make([]Domain, len(names))
	for i, n := range names {
		list[i].Name = n
	}
	return m.call(ctx, "set domains", start, "SetLinkDomains", int32(ifindex), list)
}

// FlushCaches makes resolved drop negative answers from before a change. It does not
// wait for a reply: a resolved that has exited has no cache.
func (m *Manager) FlushCaches(ctx context.Context) error {
	return m.call(ctx, "flush caches", dbus.FlagNoReplyExpected|dbus.FlagNoAutoStart, "FlushCaches")
}

// read reads the Manager's properties.
func (m *Manager) read(ctx context.Context, flags dbus.Flags) (s Snapshot, err error) {
	props, err := m.properties(ctx, flags, managerPath, manager)
	if err == nil {
		s, err = parse(props)
	}
	return s, wrap(ctx, "read", err)
}

func (m *Manager) properties(ctx context.Context, flags dbus.Flags, path dbus.ObjectPath, iface string) (props map[string]dbus.Variant, err error) {
	err = m.conn.Object(busName, path).CallWithContext(ctx, getAll, flags, iface).Store(&props)
	return props, err
}

func (m *Manager) call(ctx context.Context, what string, flags dbus.Flags, method string, args ...any) error {
	return wrap(ctx, what, m.conn.Object(busName, managerPath).CallWithContext(ctx, manager+"."+method, flags, args...).Err)
}

// Errors that callers can check for with errors.Is. After ErrNoReply, a change may
// have been made.
var (
	ErrNotRunning = errors.New("systemd-resolved is not available") // absent, disabled, masked, or cannot be started
	ErrLinkBusy   = errors.New("systemd-networkd owns the link")    // or it is the loopback device
	ErrNoReply    = errors.New("systemd-resolved ended before it answered")
	ErrNoSuchLink = errors.New("systemd-resolved does not know the link") // or not yet
)

// sentinel maps the names of D-Bus errors to errors of this package. If resolved is
// not running, the name depends on the bus (dbus-daemon or dbus-broker) and on the
// reason.
func sentinel(name string) error {
	switch {
	case name == "org.freedesktop.DBus.Error.ServiceUnknown", // no service file
		name == "org.freedesktop.DBus.Error.NameHasNoOwner",          // dbus-broker: disabled, masked, failed
		name == "org.freedesktop.systemd1.NoSuchUnit",                // dbus-daemon: disabled
		name == "org.freedesktop.systemd1.UnitMasked",                // dbus-daemon: masked
		name == "org.freedesktop.DBus.Error.FileExists",              // dbus-daemon 1.14: masked
		name == "org.freedesktop.systemd1.ShuttingDown",              // the machine goes down
		strings.HasPrefix(name, "org.freedesktop.DBus.Error.Spawn."): // no systemd: the service file says /bin/false
		return ErrNotRunning
	case name == busName+".LinkBusy":
		return ErrLinkBusy
	case name == busName+".NoSuchLink", name == "org.freedesktop.DBus.Error.UnknownObject":
		return ErrNoSuchLink
	case name == "org.freedesktop.DBus.Error.NoReply":
		return ErrNoReply
	}
	return nil
}

// wrap adds what failed to an error. For an ended context godbus returns only that
// it has ended, so its cause is used.
func wrap(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if e, ok := errors.AsType[dbus.Error](err); ok {
		err = fmt.Errorf("%w (%s)", cmp.Or(sentinel(e.Name), err), e.Name)
	}
	return fmt.Errorf("resolv: %s: %w", what, err)
}

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
