package faults

import (
	"context"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// play is the inside: this process is in namespaces of its own, with nothing but the host's files to see.
func (o order) play() Result {
	c := o.Case
	must(namespace.SetUp("ignition.platform.id=azure"))
	must(makePool())
	must(network(c.World))
	s := startServers(c)
	if c.World.Option245 != "" {
		bus, err := bustest.Start("/run/dbus/system_bus_socket")
		must(err)
		defer bus.Close()
		// The one interface has a lease. There is neither resolved nor systemd.
		_, err = bus.ExportNetworkManager([]bustest.Device{{Interface: "lo", State: 100, Options: map[string]string{
			"ip_address": "10.0.0.4", "routers": "10.0.0.1", "private_245": c.World.Option245, "domain_name_servers": constant,
		}}}, nil)
		must(err)
	}
	end, untrue := make(chan struct{}), make(chan int)
	go func() { untrue <- s.watchHost(end) }()
	small := o
	small.Case.Script, small.Case.World.Other = wiretest.Script{}, nil
	r, err := small.delegate(context.Background(), roleRun, 0)
	must(err)
	close(end)
	r.HostUntrue, r.Host = <-untrue, hostResult()
	s.into(&r)
	r.Attempts = record().Attempts
	return r
}

// network makes the addresses: the servers' are this machine's own, unless packets to them vanish, into a cable at the
// other end of which nobody has that address.
func network(w World) error {
	commands := []string{"link set lo up"}
	if w.Lost > 0 || w.OtherLost {
		commands = append(commands, "link add v0 type veth peer name v1", "link set v0 up", "link set v1 up", "addr add 10.0.0.4/24 dev v0")
	}
	vanish := func(addr string) {
		commands = append(commands, "route add "+addr+"/32 dev v0 src 10.0.0.4", "neigh add "+addr+" lladdr 02:00:00:00:00:99 dev v0 nud permanent")
	}
	switch {
	case w.Lost > 0:
		vanish(constant)
	case w.NoRoute == 0:
		commands = append(commands, addConstant)
	}
	switch {
	case w.OtherLost:
		vanish(other)
	case w.Option245 != "":
		// Reached here, but none of the machine's addresses: those are refused.
		commands = append(commands, "route add local "+other+"/32 dev lo", "route add default dev lo")
	}
	return namespace.IP(commands...)
}

const addConstant = "addr add " + constant + "/32 dev lo"
