package lab

import "fmt"

// Daemon is a daemon of the guest, by the name of its unit without the suffix.
type Daemon string

// The daemons that a lab starts, in this order.
const (
	Journald       Daemon = "systemd-journald"
	DBus           Daemon = "dbus"
	Udevd          Daemon = "systemd-udevd"
	Resolved       Daemon = "systemd-resolved"
	NetworkManager Daemon = "NetworkManager"
)

// Dispatcher is started by a call on the bus only.
const Dispatcher Daemon = "NetworkManager-dispatcher"

// State is how a daemon is to be found in the guest. The zero value is: installed, enabled and running.
type State string

// Other states of a daemon. Without [Config].Systemd nobody starts a stopped daemon; D-Bus says that its start failed.
const (
	Running  State = ""
	Stopped  State = "stopped"  // not started; with systemd a call on the bus starts it
	Disabled State = "disabled" // not started, and a call on the bus does not start it
	Masked   State = "masked"   // its unit is a link to /dev/null; wants systemd
	Absent   State = "absent"   // the bus does not know its name
)

// program tells how a daemon is started by hand, and which socket or file it makes when it is ready.
func (d Daemon) program() (argv []string, ready string, err error) {
	switch d {
	case Journald:
		return []string{"/lib/systemd/systemd-journald"}, "/run/systemd/journal/dev-log", nil
	case DBus:
		return []string{"/usr/bin/dbus-daemon", "--system", "--nofork", "--nopidfile", "--nosyslog"},
			"/run/dbus/system_bus_socket", nil
	case Udevd:
		return []string{"/lib/systemd/systemd-udevd"}, "/run/udev/control", nil
	case Resolved:
		return []string{"/lib/systemd/systemd-resolved"}, "/run/systemd/resolve/stub-resolv.conf", nil
	case NetworkManager:
		return []string{"/usr/sbin/NetworkManager", "--no-daemon"}, "", nil
	}
	return nil, "", fmt.Errorf("lab: no daemon %q", d)
}

// bus is the name on the system bus by which a call starts the daemon; empty: none does.
func (d Daemon) bus() string {
	switch d {
	case Resolved:
		return "org.freedesktop.resolve1"
	case NetworkManager:
		return "org.freedesktop.NetworkManager"
	case Dispatcher:
		return "org.freedesktop.nm_dispatcher"
	}
	return ""
}
