// Package machine takes a snapshot of the machine for the read-only commands: the
// state of NetworkManager, systemd-networkd, systemd-resolved, systemd, the kernel,
// files and records at one moment.
//
// It changes nothing and starts no service. Sources are read in parallel, each with
// its own time limit. If a source hangs, the snapshot has an error in its place.
package machine

import (
	"net/netip"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Seen is the value of a source, or why it is not known.
type Seen[T any] struct {
	V   T
	Err error
}

// Snapshot is the machine at one moment.
type Snapshot struct {
	Platform  Platform
	Interface string // the one to check; "" if there is none
	User      int    // the effective user ID

	NM       Seen[nm.Snapshot]
	Networkd Seen[[]networkd.Link]
	Resolved Seen[resolv.Snapshot]
	Units    Seen[map[string]Unit]
	Hook     Hook
	Conf     Conf
	Kernel   Kernel
	Records  Records
	Probes   Probes
}

// Platform is the result of package azure.
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
	Holder  string                     // the holder of the check-in's lock, "process 4711"; "" if none
}

// Kernel is the kernel's interfaces and addresses.
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
	Ethernet bool // and neither a bridge nor a port of another interface
}

// Neighbour is an entry of the ARP table.
type Neighbour struct {
	Addr      netip.Addr
	Interface string
	Permanent bool // configured manually
	Complete  bool // the hardware address is known
}
