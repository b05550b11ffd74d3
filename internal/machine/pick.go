package machine

import (
	"maps"
	"slices"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// Primary returns the interfaces whose lease is that of a primary interface.
func (s *Snapshot) Primary() []string {
	var names []string
	for name, l := range s.Leases() {
		if l.HostRoute() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// pick returns the interface to check if the user names none: the one with a lease
// of a primary interface, of several the one with the preferred default route. If
// there are only leases of secondary interfaces, it is a hardware interface that
// should have a lease and has none. Otherwise it is the one with the default route,
// or the first one.
func (s *Snapshot) pick() string {
	primary, leases := s.Primary(), s.Leases()
	best := slices.DeleteFunc(slices.Clone(s.Kernel.DefaultRoutes), func(name string) bool { return !slices.Contains(primary, name) })
	var without, hardware, ethernet []string
	for _, l := range s.Kernel.Links {
		switch {
		case !l.Ethernet:
		case !l.Hardware:
			ethernet = append(ethernet, l.Name)
		default:
			hardware = append(hardware, l.Name)
			if leases[l.Name] == nil && s.asks(l.Name) {
				without = append(without, l.Name)
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(leases)), func(l *nm.Lease) bool { return !l.Primary() }) {
		without = nil
	}
	return slices.Concat(best, primary, without, s.Kernel.DefaultRoutes, hardware, ethernet, []string{""})[0]
}

// asks reports whether an interface should have a lease.
func (s *Snapshot) asks(iface string) bool {
	if d, known := s.NM.V.Device(iface); known {
		return d.Managed && !d.External
	}
	return slices.ContainsFunc(s.Networkd.V, func(l networkd.Link) bool { return l.Name == iface && l.Managed && l.Master == 0 })
}
