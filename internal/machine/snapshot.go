// Package machine takes a snapshot of the machine for the commands that only
// look: what NetworkManager, systemd-networkd, systemd-resolved, systemd, the
// kernel, the files and the records say at one moment.
//
// Nothing in it changes anything or starts a service. The sources are read side
// by side, each within a limit of its own, so that whatever hangs is missing
// from the snapshot, with an error in its place, and nothing else is.
package machine

import (
	"net/netip"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Seen is what a source said, or why it said nothing.
type Seen[T any] struct {
	V   T
	Err error
}

// none is for sources that say no more than that there is no error.
type none struct{}

// Snapshot is the machine at one moment.
type Snapshot struct {
	Platform  Platform
	Interface string // the one that the checks are about; "" if there is none
	User      int    // the effective user ID
	Records   Records

	NM       Seen[nm.Snapshot]
	Networkd Seen[[]networkd.Link]
	Resolved Seen[resolv.Snapshot]
	Units    Units
	Hook     Hook
	Conf     Conf
	Kernel   Kernel
	Probes   Probes
}

// Platform is what package azure says.
type Platform struct {
	Azure bool
	Why   string
	Err   error // why it is not known
}

// Records are those of this boot.
type Records struct {
	BootID  string // "" if it cannot be read
	BootErr error
	CheckIn Seen[boot.CheckIn]         // the error is fs.ErrNotExist without a record
	Links   map[string]Seen[boot.Link] // by interface
	Holder  string                     // who holds the check-in's lock, "process 4711"; "" if nobody does
}

// Kernel is what the kernel says of interfaces and addresses.
type Kernel struct {
	Links         []Link // by index
	DefaultRoutes []string
	Own           []netip.Addr // the machine's own addresses
	Neighbours    []Neighbour  // of IPv4
}

// Link is a network interface.
type Link struct {
	Name     string
	Index    int
	Ethernet bool // and neither a bridge nor a part of another interface
	Hardware bool // there is a device behind it, or what passes for one
}

// Neighbour is an entry of the ARP table.
type Neighbour struct {
	Addr      netip.Addr
	Interface string
	Permanent bool // somebody set it
	Complete  bool // the hardware address is known
}

// Probes are answers to what the checks ask on the network.
type Probes struct {
	Route     Seen[Route]          // to the WireServer
	TCP       Seen[none]           // of a connection to the WireServer
	GoalState Seen[wire.GoalState] // from the WireServer
	Small     Seen[none]           // whether it answers in small segments; asked if it is slow
	Default   Seen[wire.GoalState] // whether the default address answers a goal state; asked where the lease names another
	Servers   Seen[[]Reply]        // of each nameserver in use
	File      Seen[[]Reply]        // of each nameserver in resolv.conf, asked as a program does
	Name      string               // that the nameservers were asked for
	Asked     bool                 // the operator named it
	LookUp    Seen[resolv.Found]   // of Name, by systemd-resolved
	Public    Seen[resolv.Found]   // of a public name; asked if another link takes all names
}

// Reply is what a nameserver answered.
type Reply struct {
	resolv.Answer
	Err error
}

// Route is how the kernel sends to an address.
type Route struct {
	Interface string
	Gateway   netip.Addr // zero: the address is on the link
	Source    netip.Addr
	Table     int
	Rules     []int // the priorities of the routing rules that come before the main table
}
