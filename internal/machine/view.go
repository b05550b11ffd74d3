package machine

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

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
	d, known := s.Device()
	l := s.NetworkdLink(s.Interface)
	switch {
	case d.Lease != nil || l.Lease != nil:
		return d.Lease == nil
	case l.Managed != (known && d.Managed && !d.External):
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
	d, _ := s.NM.V.Device(iface)
	v := dispatch.LinkView{
		Primary: slices.Contains(s.Kernel.DefaultRoutes, iface), Activated: d.State == nm.StateActivated, External: d.External,
		DNS: s.NM.V.DNSConfig(iface), DNSErr: s.NM.Err, GlobalDNS: s.NM.V.GlobalDNS,
		Have: s.Resolved.V.State(s.Index(iface)), HaveErr: s.Resolved.Err, Record: s.Records.Links[iface].V, Own: s.Kernel.Own,
	}
	if d.Lease != nil {
		v.Lease = d.Lease.Nameservers
	} else if s.NetworkdLink(iface).Managed && v.HaveErr == nil {
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
// there are only leases of secondary interfaces, it is a hardware interface that
// should have a lease and has none. Otherwise it is the one with the default route,
// or the first one.
func (s *Snapshot) pick() string {
	primary, leases := s.Primary(), s.Leases()
	best := slices.DeleteFunc(slices.Clone(s.Kernel.DefaultRoutes), func(name string) bool { return !slices.Contains(primary, name) })
	secondary := false
	for _, l := range leases {
		secondary = secondary || !l.Primary()
	}
	var without, hardware, ethernet []string
	for _, l := range s.Kernel.Links {
		switch {
		case !l.Ethernet:
		case !l.Hardware:
			ethernet = append(ethernet, l.Name)
		default:
			hardware = append(hardware, l.Name)
			if secondary && leases[l.Name] == nil && s.asks(l.Name) {
				without = append(without, l.Name)
			}
		}
	}
	return slices.Concat(best, primary, without, s.Kernel.DefaultRoutes, hardware, ethernet, []string{""})[0]
}

// asks reports whether an interface should have a lease.
func (s *Snapshot) asks(iface string) bool {
	if d, known := s.NM.V.Device(iface); known {
		return d.Managed && !d.External
	}
	l := s.NetworkdLink(iface)
	return l.Managed && l.Master == 0
}

// name returns the name to look up: the operator's, or the lease's domain, or a
// public one.
func (s *Snapshot) name(operator string) string {
	if operator != "" {
		return operator
	}
	if l := s.Lease(); l != nil {
		for _, d := range l.Domains {
			if strings.Contains(d, ".") { // resolved does not query nameservers for others
				return d
			}
		}
	}
	return publicName
}

// servers returns the nameservers that receive the queries of programs; if there are
// none, those that should.
func (s *Snapshot) servers() []netip.Addr {
	servers := s.Conf.ResolvConf.Servers
	if s.Resolved.Err == nil {
		servers = s.Resolved.V.State(s.Index(s.Interface)).Addrs()
	}
	servers = slices.DeleteFunc(slices.Clone(servers), IsStub)
	if len(servers) == 0 {
		servers = s.NM.V.DNSConfig(s.Interface).Nameservers
	}
	if l := s.Lease(); len(servers) == 0 && l != nil {
		servers = l.Nameservers
	}
	return servers[:min(len(servers), maxServers)]
}

// AllNames returns the interface, other than the checked one, to which
// systemd-resolved sends all queries without a more specific domain; "" if none.
func (s *Snapshot) AllNames() string {
	for _, l := range s.Kernel.Links {
		if l.Name != s.Interface && slices.Contains(s.Resolved.V.Links[l.Index].Domains, resolv.Domain{Name: ".", RouteOnly: true}) {
			return l.Name
		}
	}
	return ""
}
