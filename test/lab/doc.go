// Package lab runs the real NetworkManager, nm-dispatcher, dbus-daemon, systemd-journald and systemd-resolved of a
// Debian release in namespaces, opposite a cloud of our own: a DHCP server that sends what a test wants, nameservers
// and a WireServer.
//
// A [Lab] is two machines, [Cloud] and [Guest], each with network, mount, pid, uts and ipc namespaces of its own. Both
// begin as this same executable, started once more: a program that uses the package calls [Main] first thing. Nothing
// of a lab has a name on the host (except for a cgroup with [Config].Systemd), so nothing is left behind however the
// program ends: the machines end when their standard input does.
//
// A case of a test reads like this:
//
//	l := start(t, lab.Config{Suite: "trixie", DNS: "none", ToResolved: "false", Product: product(t)})
//	connected(t, l, "eth0")                                        // a lease is there
//	ok(t, l.Guest.Settle(t.Context()))                             // and all events are over
//	requests, err := l.Cloud.Requests(t.Context())                 // what the WireServer was asked
//	servers := run(t, l, "resolvectl", "dns", "eth0")              // what the guest's resolved holds
//	err = l.Cloud.SetLease(t.Context(), "eth0", lab.AzureLease().Without(lab.OptWireServer))
//	err = l.Guest.Signal(t.Context(), lab.Resolved, unix.SIGSTOP)
//
// It needs root and ip on the host, and a Debian tree that [Tree] makes with mmdebstrap.
package lab
