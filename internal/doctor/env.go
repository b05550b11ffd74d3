package doctor

import (
	"context"
	"io/fs"
	"net/netip"
	"path"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Env is what the checks look at, and by what means. Every func returns when
// its context ends.
type Env struct {
	Root      fs.FS  // the file system from / on
	Interface string // the one to look at; see PickInterface
	Name      string // the name to look up; "" for one that the lease suggests
	User      int    // the effective user ID
	BootID    string // "" if it cannot be read
	Records   boot.Dir
	OwnAddrs  []netip.Addr // the machine's own addresses

	NetworkManager func(context.Context) (live.NetworkManager, error)
	Resolved       func(ctx context.Context, ifindex int) (live.Resolved, error)
	Units          func(ctx context.Context, names []string) (map[string]live.Unit, error)
	// Label returns a file's SELinux label, "" if it has none.
	Label func(name string) string
	// Source returns the address that a packet to another would be sent from. No
	// packet is sent.
	Source    func(context.Context, netip.Addr) (netip.Addr, error)
	Dial      func(context.Context, netip.AddrPort) error
	GoalState func(context.Context, netip.Addr) (wire.GoalState, error)
	Ask       func(ctx context.Context, server netip.Addr, name string) (resolv.Answer, error)
	LookUp    func(ctx context.Context, name string) (live.Answer, error)

	// What checks have found, for those behind them. Each is set by one check
	// only, and read by those that wait for it.
	nm       *live.NetworkManager
	device   live.Device
	resolved *live.Resolved

	units     map[string]live.Unit
	unitsRead chan struct{} // closed when units is there
}

// PickInterface returns the interface to look at where none is named: that of
// the preferred default route, or else the first one that is no loopback, no
// bridge and no part of another; "" if there is none.
func PickInterface(root fs.FS) string {
	if names := link.DefaultRoutes(root); len(names) > 0 {
		return names[0]
	}
	const classNet = "sys/class/net"
	entries, _ := fs.ReadDir(root, classNet) // sorted; none if it cannot be read
	first := ""
	for _, e := range entries {
		name := e.Name()
		kind, _ := fs.ReadFile(root, path.Join(classNet, name, "type"))
		_, notBridge := fs.Stat(root, path.Join(classNet, name, "bridge"))
		if strings.TrimSpace(string(kind)) != "1" || notBridge == nil || link.Slave(root, name) { // ARPHRD_ETHER
			continue
		}
		if _, err := fs.Stat(root, path.Join(classNet, name, "device")); err == nil {
			return name // a device of hardware, or what passes for it
		}
		if first == "" {
			first = name
		}
	}
	return first
}

// target is where the check-in goes to.
func (e *Env) target() netip.Addr {
	if e.device.Lease == nil {
		return wire.DefaultAddr
	}
	return dispatch.TargetOf(e.Interface, *e.device.Lease, e.OwnAddrs).Server
}

// readUnits asks how all units stand that any check wants to know of; where
// systemd cannot be asked the files have to do.
func (e *Env) readUnits(ctx context.Context) {
	defer close(e.unitsRead)
	ctx, cancel := context.WithTimeout(ctx, unitsLimit)
	defer cancel()
	names := append([]string{dispatcherUnit, timerUnit, checkInUnit, resolvedUnit}, agentUnits()...)
	var err error
	if e.units, err = e.Units(ctx, names); err != nil {
		e.units = live.UnitFiles(e.Root, names)
	}
}

// unit tells how a unit stands.
func (e *Env) unit(name string) live.Unit {
	<-e.unitsRead
	return e.units[name]
}

// systemd reports whether the machine was booted with it, sd_booted(3).
func (e *Env) systemd() bool {
	_, err := fs.Stat(e.Root, "run/systemd/system")
	return err == nil
}
