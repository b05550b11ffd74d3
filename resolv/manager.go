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

// Manager talks to systemd-resolved over one bus connection. Every method
// returns when its context ends.
type Manager struct {
	obj dbus.BusObject
}

// NewManager returns a Manager on a connected system bus.
func NewManager(conn *dbus.Conn) *Manager {
	return &Manager{obj: conn.Object(busName, managerPath)}
}

// State reads what resolved holds for the link and for all, in one round trip.
// A link that resolved does not know has no servers: only setting tells.
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

// SetNameservers replaces the link's nameservers; none clears them. resolved
// refuses the whole list for one bad address (0.0.0.0, ::, its own stub) and
// keeps the old one then.
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

// SetDomains replaces the link's domains by these search domains; none clears
// them.
func (m *Manager) SetDomains(ctx context.Context, ifindex int, names []string) error {
	list := make([]Domain, len(names))
	for i, n := range names {
		list[i].Name = n
	}
	err := m.obj.CallWithContext(ctx, setLinkDomains, defaultCallFlag, int32(ifindex), list).Err
	return wrap(ctx, "set domains", ifindex, err)
}

// FlushCaches makes resolved forget negative answers from before a change. It
// does not wait for that: a resolved that is gone has nothing to forget.
func (m *Manager) FlushCaches(ctx context.Context) error {
	if err := m.obj.CallWithContext(ctx, flushCaches, dbus.FlagNoReplyExpected|dbus.FlagNoAutoStart).Err; err != nil {
		return fmt.Errorf("resolv: flush caches: %w", err)
	}
	return nil
}

// The failures that a caller branches on.
var (
	// ErrNotRunning says that resolved is absent, disabled, masked or cannot
	// be started.
	ErrNotRunning = errors.New("systemd-resolved is not available")
	// ErrLinkBusy says that systemd-networkd owns the link, or that it is the
	// loopback device.
	ErrLinkBusy = errors.New("systemd-networkd owns the link")
	// ErrNoReply says that resolved ended before it answered: a change may have
	// been made.
	ErrNoReply = errors.New("systemd-resolved ended before it answered")
	// ErrNoSuchLink says that resolved does not know the link, or not yet.
	ErrNoSuchLink = errors.New("systemd-resolved does not know the link")
)

// sentinel maps the names of D-Bus errors. Which one stands for a resolved
// that is not there depends on the bus (dbus-daemon or dbus-broker) and on how
// it is missing.
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

// wrap names what was not done and why. godbus says of an ended context only
// that it has ended; its cause says what was waited for.
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
