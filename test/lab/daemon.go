package lab

// Daemon is a daemon of the guest, by the name of its unit without the suffix.
type Daemon string

// The daemons that a lab starts, in this order.
const (
	Journald       Daemon = "systemd-journald"
	DBus           Daemon = "dbus"
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

// program is how a daemon is started by hand.
type program struct {
	argv  []string
	ready string // the socket or file that it makes when it is ready; empty: none
}

var programs = map[Daemon]program{
	Journald:       {[]string{"/lib/systemd/systemd-journald"}, "/run/systemd/journal/dev-log"},
	DBus:           {[]string{"/usr/bin/dbus-daemon", "--system", "--nofork", "--nopidfile", "--nosyslog"}, "/run/dbus/system_bus_socket"},
	Resolved:       {[]string{"/lib/systemd/systemd-resolved"}, "/run/systemd/resolve/stub-resolv.conf"},
	NetworkManager: {[]string{"/usr/sbin/NetworkManager", "--no-daemon"}, ""},
}

// busNames are the names on the system bus by which a call starts a daemon.
var busNames = map[Daemon]string{
	Resolved: "org.freedesktop.resolve1", NetworkManager: "org.freedesktop.NetworkManager", Dispatcher: "org.freedesktop.nm_dispatcher",
}
