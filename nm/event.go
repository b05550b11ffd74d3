package nm

import (
	"errors"
	"fmt"
	"strings"
)

// Action is the action of an event, see NetworkManager-dispatcher(8).
type Action string

// The actions that can mean a new lease or the end of one. Others (pre-up,
// hostname, connectivity-change, dns-change, vpn-up, and those of later versions)
// are valid and are ignored.
const (
	Up          Action = "up"
	DHCP4Change Action = "dhcp4-change"
	Reapply     Action = "reapply" // since NetworkManager 1.42
	Down        Action = "down"
)

// Event is one call of the dispatcher.
type Event struct {
	Interface string // the IP interface; "none" or "" for actions without a device
	Action    Action
	External  bool // the device was configured by another program (CONNECTION_EXTERNAL=1)
	// DHCP4 reports whether the environment has lease variables (DHCP4_*).
	// NetworkManager sets them only for an activated device, so they can
	// be missing at the first dhcp4-change and on down although there is a lease.
	DHCP4 bool
}

// ParseEvent parses the two arguments and the environment ("NAME=value") of a
// dispatcher script. It fails if the action is empty, or if the interface of a device's
// action has an invalid name.
func ParseEvent(iface, action string, env []string) (Event, error) {
	ev := Event{Interface: iface, Action: Action(action)}
	if ev.Action == "" {
		return Event{}, errors.New("nm: event: the action is empty, want one of NetworkManager-dispatcher(8)")
	}
	if !ev.Concerns() {
		return ev, nil
	}
	if err := CheckInterface(ev.Interface); err != nil {
		return Event{}, err
	}
	for _, kv := range env {
		ev.External = ev.External || kv == "CONNECTION_EXTERNAL=1"
		ev.DHCP4 = ev.DHCP4 || strings.HasPrefix(kv, "DHCP4_")
	}
	return ev, nil
}

// Concerns reports whether the event can mean a new lease or the end of one.
func (e Event) Concerns() bool {
	switch e.Action {
	case Up, DHCP4Change, Reapply, Down:
		return true
	}
	return false
}

// CheckInterface returns an error if the kernel gives no network interface this name.
func CheckInterface(name string) error {
	const maxLen = 15 // IFNAMSIZ less the closing NUL, netdevice(7)
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '/' || r == ':' }
	if name == "" || len(name) > maxLen || name == "." || name == ".." || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("nm: %.40q is not the name of an interface: want 1 to %d bytes without slash, colon and white space; see ip link", name, maxLen)
	}
	return nil
}
