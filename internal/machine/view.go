package machine

import (
	"slices"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Device returns NetworkManager's device of the interface.
func (s *Snapshot) Device() (nm.DeviceInfo, bool) { return s.NM.V.Device(s.Interface) }

// NetworkdLink returns systemd-networkd's link of the interface.
func (s *Snapshot) NetworkdLink() (networkd.Link, bool) {
	i := slices.IndexFunc(s.Networkd.V, func(l networkd.Link) bool { return l.Name == s.Interface })
	if i < 0 {
		return networkd.Link{}, false
	}
	return s.Networkd.V[i], true
}

// ByNetworkd reports whether systemd-networkd configures the interface: the
// manager that has the lease counts, else the one that manages the interface, else
// the one that is running or enabled.
func (s *Snapshot) ByNetworkd() bool {
	d, known := s.Device()
	l, _ := s.NetworkdLink()
	switch {
	case d.Lease != nil || l.Lease != nil:
		return d.Lease == nil
	case l.Managed != (known && d.Managed && !d.External):
		return l.Managed
	case s.NM.Err == nil || s.Units.Of(UnitNetworkManager).On():
		return false
	}
	return s.Networkd.Err == nil || s.Units.Of(UnitNetworkd).On()
}

// Lease returns the DHCPv4 lease of the interface, nil without one.
func (s *Snapshot) Lease() *nm.Lease {
	if s.ByNetworkd() {
		l, _ := s.NetworkdLink()
		return l.Lease
	}
	d, _ := s.Device()
	return d.Lease
}

// Leases returns the lease of each interface that has one.
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
	d, _ := s.NM.V.Device(iface)
	v := dispatch.LinkView{
		Primary: slices.Contains(s.Kernel.DefaultRoutes, iface), Activated: d.State == nm.StateActivated, External: d.External,
		DNS: s.NM.V.DNSConfig(iface), DNSErr: s.NM.Err, GlobalDNS: s.NM.V.GlobalDNS,
		Have: s.Resolved.V.State(s.Index(iface)), HaveErr: s.Resolved.Err, Record: s.Records.Links[iface].V, Own: s.Kernel.Own,
	}
	if d.Lease != nil {
		v.Lease = d.Lease.Nameservers
	}
	if i := slices.IndexFunc(s.Networkd.V, func(l networkd.Link) bool { return l.Name == iface && l.Managed }); i >= 0 && d.Lease == nil && v.HaveErr == nil {
		v.HaveErr = resolv.ErrLinkBusy
	}
	return v
}

// Ready reports whether the record says that Azure received Ready in this boot.
func (s *Snapshot) Ready() bool {
	return s.Records.CheckIn.Err == nil && s.Records.CheckIn.V.State == boot.Ready
}

// Profile returns the profile of the interface, or zero if it is not known.
func (s *Snapshot) Profile() nm.Profile {
	d, _ := s.Device()
	return d.Profile
}
