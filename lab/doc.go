// Package lab runs the real NetworkManager, nm-dispatcher, dbus-daemon, systemd-journald and systemd-resolved of a
// Debian release in namespaces, opposite a cloud of our own: a DHCP server that sends what a test wants, nameservers
// and a WireServer.
//
// A [Lab] is two machines, [Cloud] and [Guest], each with network, mount, pid, uts and ipc namespaces of its own. Both
// begin as this same executable, started once more: a program that uses the package calls [Main] first thing. Nothing
// of a lab has a name on the host (but for a cgroup with [Config].Systemd), so nothing is left behind however the
// program ends: the machines end when their end of a socket does.
//
// It needs root, nsenter and ip on the host, and a Debian tree that [Tree] makes with mmdebstrap.
package lab
