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
	busName         = "org.freedesktop.resolve1"
	managerPath     = "/org/freedesktop/resolve1"
	manager         = "org.freedesktop.resolve1.Manager"
	setLinkDNS      = manager + ".SetLinkDNS"
	setLinkDomains  = manager + ".SetLinkDomains"
	flushCaches     = manager + ".FlushCaches"
	propertiesAll   = "org.freedesktop.DBus.Properties.GetAll"
	familyIPv4      = 2  // AF_INET
	familyIPv6      = 10 // AF_INET6
	defaultCallFlag = 0  // resolved is started by the bus if it is enabled and not running
)

// Manager calls systemd-resolved over one bus connection. Every method returns when
// its context ends.
type Manager struct {
	obj dbus.BusObject
}

// NewManager returns a Manager on a connected system bus.
func NewManager(conn *dbus.Conn) *Manager {
	return &Manager{obj: conn.Object(busName, managerPath)}
}

// State reads the configuration of the link and the global one, in one round trip.
// For a link that resolved does not know, it returns no servers and no error.
func (m *Manager) State(ctx context.Context, ifindex int) (State, error) {
	var props map[string]dbus.Variant
	if err := m.obj.CallWithContext(ctx, propertiesAll, defaultCallFlag, manager).Store(&props); err != nil {
		return State{}, wrap(ctx, "read", ifindex, err)
	}
	s, err := parseState(props, ifindex)
	if err != nil {
		return State{}, fmt.Errorf("resolv: read: %w", err)
	}
	return s, nil
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
		list[i] = address{Family: familyIPv4, Addr: a.AsSlice()}
		if a.Is6() {
			list[i].Family = familyIPv6
		}
	}
	err := m.obj.CallWithContext(ctx, setLinkDNS, defaultCallFlag, int32(ifindex), list).Err
	return wrap(ctx, "set nameservers", ifindex, err)
}

// SetDomains replaces the link's domains by these search domains; an empty list
// removes them.
func (m *Manager) SetDomains(ctx context.Context, ifindex int, names []string) error {
	list := make([]Domain, len(names))
	for i, n := range names {
		list[i].Name = n
	}
	err := m.obj.CallWithContext(ctx, setLinkDomains, defaultCallFlag, int32(ifindex), list).Err
	return wrap(ctx, "set domains", ifindex, err)
}

// FlushCaches makes resolved drop negative answers from before a change. It does not
// wait for a reply: a resolved that has exited has no cache.
func (m *Manager) FlushCaches(ctx context.Context) error {
	if err := m.obj.CallWithContext(ctx, flushCaches, dbus.FlagNoReplyExpected|dbus.FlagNoAutoStart).Err; err != nil {
		return fmt.Errorf("resolv: flush caches: %w", err)
	}
	return nil
}

// Errors that callers can check for with errors.Is.
var (
	// ErrNotRunning: resolved is absent, disabled, masked or cannot
	// be started.
	ErrNotRunning = errors.New("systemd-resolved is not available")
	// ErrLinkBusy: systemd-networkd manages the link, or it is the
	// loopback device.
	ErrLinkBusy = errors.New("systemd-networkd owns the link")
	// ErrNoReply: resolved exited before it answered; a change may have been
	// made.
	ErrNoReply = errors.New("systemd-resolved ended before it answered")
	// ErrNoSuchLink: resolved does not know the link, or not yet.
	ErrNoSuchLink = errors.New("systemd-resolved does not know the link")
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
	case name == "org.freedesktop.resolve1.LinkBusy":
		return ErrLinkBusy
	case name == "org.freedesktop.resolve1.NoSuchLink", name == "org.freedesktop.DBus.Error.UnknownObject":
		return ErrNoSuchLink
	case name == "org.freedesktop.DBus.Error.NoReply":
		return ErrNoReply
	}
	return nil
}

// wrap adds what failed to an error. For an ended context godbus returns only that
// it has ended, so its cause is used.
func wrap(ctx context.Context, what string, ifindex int, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if e, ok := errors.AsType[dbus.Error](err); ok {
		err = fmt.Errorf("%w (%s)", cmp.Or(sentinel(e.Name), err), e.Name)
	}
	return fmt.Errorf("resolv: %s of link %d: %w", what, ifindex, err)
}
