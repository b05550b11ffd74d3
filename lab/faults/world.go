package faults

import (
	"context"
	"errors"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// play is the inside: this process is in namespaces of its own, with nothing but the host's files to see.
func (o order) play() (Result, error) {
	if err := namespace.SetUp("ignition.platform.id=azure"); err != nil {
		return Result{}, err
	}
	c := o.Case
	if err := network(c.World); err != nil {
		return Result{}, err
	}
	w, err := startServers(c)
	if err != nil {
		return Result{}, err
	}
	defer w.stop()
	if c.World.Option245 != "" {
		bus, err := startBus(c.World.Option245)
		if err != nil {
			return Result{}, err
		}
		defer bus.Close()
	}
	small := o
	small.Case.Script, small.Case.World.Other = wiretest.Script{}, nil
	r, err := small.delegate(context.Background(), roleRun, 0)
	if err := errors.Join(err, w.failed()); err != nil {
		return Result{}, err
	}
	w.into(&r)
	recordInto(&r)
	return r, nil
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

// phases are what the server at the default address does, one after the other.
func phases(c Case) []phase {
	switch w := c.World; {
	case w.Refused > 0:
		return []phase{{lasts: w.Refused}, {script: &c.Script}}
	case w.Bad > 0:
		bad := everywhere(status(503))
		return []phase{{lasts: w.Bad, script: &bad}, {script: &c.Script}}
	case w.Page > 0:
		pages := everywhere(page)
		return []phase{{lasts: w.Page, script: &pages}, {script: &c.Script}}
	}
	return []phase{{script: &c.Script}}
}

type phase struct {
	lasts  time.Duration    // 0: to the end
	script *wiretest.Script // nil: nobody listens
}
