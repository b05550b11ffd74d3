package machine

import (
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

// Leased returns the interfaces with a DHCPv4 lease, see [dispatch.Leased].
func (s *Snapshot) Leased() []nm.Device {
	return dispatch.Leased(s.NM.V.Devices, s.Networkd.V, s.Kernel.DefaultRoutes)
}

// LeaseOf returns the lease of an interface, nil without one.
func (s *Snapshot) LeaseOf(iface string) *nm.Lease {
	if d, _ := s.NM.V.Device(iface); d.Lease != nil {
		return d.Lease
	}
	return s.NetworkdLink(iface).Lease
}

// Lease returns the lease of the checked interface, nil without one.
func (s *Snapshot) Lease() *nm.Lease { return s.LeaseOf(s.Interface) }

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

// pick returns the interface to check if the user names none: the one whose lease the
// check-in uses. If there are only leases of secondary interfaces, it is one that
// should have a lease and has none. Otherwise it is the one with the default route, or
// the first one.
func (s *Snapshot) pick() string {
	leased := s.Leased()
	if len(leased) > 0 && leased[0].Lease.Primary() {
		return leased[0].Interface
	}
	var without, ethernet []string
	for _, l := range s.Kernel.Links {
		if !l.Ethernet {
			continue
		}
		ethernet = append(ethernet, l.Name)
		d, _ := s.NM.V.Device(l.Name)
		n := s.NetworkdLink(l.Name)
		if len(leased) > 0 && s.LeaseOf(l.Name) == nil && (d.Managed && !d.External || n.Managed && n.Master == 0) {
			without = append(without, l.Name)
		}
	}
	return slices.Concat(without, s.Kernel.DefaultRoutes, ethernet, []string{""})[0]
}
