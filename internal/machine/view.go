package machine

import (
	"maps"
	"slices"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Device returns NetworkManager's device of the checked interface.
func (s *Snapshot) Device() (nm.Device, bool) { return s.NM.V.Device(s.Interface) }

// NetworkdLink returns systemd-networkd's link of an interface, zero without one.
func (s *Snapshot) NetworkdLink(iface string) networkd.Link {
	for _, l := range s.Networkd.V {
		if l.Name == iface {
			return l
		}
	}
	return networkd.Link{}
}

// ByNetworkd reports whether systemd-networkd configures the checked interface: the
// manager that has the lease counts, else the one that manages the interface, else
// the one that is running or enabled.
func (s *Snapshot) ByNetworkd() bool {
	d, _ := s.Device()
	l := s.NetworkdLink(s.Interface)
	switch {
	case d.Lease != nil || l.Lease != nil:
		return d.Lease == nil
	case l.Managed != (d.Managed && !d.External):
		return l.Managed
	case s.NM.Err == nil || s.Units.V[UnitNetworkManager].On():
		return false
	}
	return s.Networkd.Err == nil || s.Units.V[UnitNetworkd].On()
}

// Leases returns the DHCPv4 lease of each interface that has one.
func (s *Snapshot) Leases() map[string]*nm.Lease {
	all := map[string]*nm.Lease{}
	for _, l := range s.Networkd.V {
		if l.Lease != nil {
			all[l.Name] = l.Lease
		}
	}
	for _, d := range s.NM.V.Devices {
		if d.Lease != nil {
			all[d.Interface] = d.Lease
		}
	}
	return all
}

// Lease returns the lease of the checked interface, nil without one.
func (s *Snapshot) Lease() *nm.Lease { return s.Leases()[s.Interface] }

// Target returns the target of the check-in.
func (s *Snapshot) Target() dispatch.Target {
	if l := s.Lease(); l != nil {
		return dispatch.TargetOf(s.Interface, *l, s.Kernel.Own)
	}
	return dispatch.DefaultTarget("", "")
}

// Index returns the index of an interface, 0 if it is gone.
func (s *Snapshot) Index(iface string) int {
	for _, l := range s.Kernel.Links {
		if l.Name == iface {
			return l.Index
		}
	}
	return 0
}

// LinkView returns the input of the nameserver policy.
func (s *Snapshot) LinkView(iface string) dispatch.LinkView {
	v := dispatch.LinkView{
		Primary: slices.Contains(s.Kernel.DefaultRoutes, iface), Record: s.Records.Links[iface].V, Own: s.Kernel.Own,
		Have: s.Resolved.V.State(s.Index(iface)), HaveErr: s.Resolved.Err,
	}
	v.Add(s.NM.V, s.NM.Err, iface, false)
	if d, _ := s.NM.V.Device(iface); d.Lease == nil && s.NetworkdLink(iface).Managed && v.HaveErr == nil {
		v.HaveErr = resolv.ErrLinkBusy
	}
	return v
}

// Ready reports whether the record says that Azure received Ready in this boot.
func (s *Snapshot) Ready() bool {
	return s.Records.CheckIn.Err == nil && s.Records.CheckIn.V.State == boot.Ready
}

// Primary returns the interfaces whose lease is that of a primary interface.
func (s *Snapshot) Primary() []string {
	leases := s.Leases()
	maps.DeleteFunc(leases, func(_ string, l *nm.Lease) bool { return !l.HostRoute() })
	return slices.Sorted(maps.Keys(leases))
}

// pick returns the interface to check if the user names none: the one with a lease
// of a primary interface, of several the one with the preferred default route. If
// there are only leases of secondary interfaces, it is one that should have a lease
// and has none. Otherwise it is the one with the default route, or the first
// one, hardware before others such as dummy0.
func (s *Snapshot) pick() string {
	primary, leases, defaults := s.Primary(), s.Leases(), s.Kernel.DefaultRoutes
	best := slices.DeleteFunc(slices.Clone(defaults), func(name string) bool { return !slices.Contains(primary, name) })
	secondary := false
	for _, l := range leases {
		secondary = secondary || !l.Primary()
	}
	var without, hardware, others []string
	for _, l := range s.Kernel.Links {
		switch {
		case !l.Ethernet:
			continue
		case l.Hardware:
			hardware = append(hardware, l.Name)
		default:
			others = append(others, l.Name)
		}
		d, _ := s.NM.V.Device(l.Name)
		n := s.NetworkdLink(l.Name)
		if secondary && leases[l.Name] == nil && (d.Managed && !d.External || n.Managed && n.Master == 0) {
			without = append(without, l.Name)
		}
	}
	return slices.Concat(best, primary, without, defaults, hardware, others, []string{""})[0]
}

// CheckingIn names what is working on the check-in, "" if nothing is: the process that
// has the lock, or the unit, which does not have it while it waits for a route.
func (s *Snapshot) CheckingIn() string {
	u := s.Units.V[UnitCheckIn]
	if s.Records.Holder == "" && (u.Active == "active" || u.Active == "activating") && u.Sub != "auto-restart" {
		return UnitCheckIn
	}
	return s.Records.Holder
}
