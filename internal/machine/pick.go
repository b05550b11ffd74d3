package machine

import (
	"net/netip"
	"slices"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// hostRoutes lead only the primary network interface of an Azure VM to the
// WireServer and to the metadata service.
var hostRoutes = []netip.Prefix{
	netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32),
	netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, 169, 254}), 32),
}

// Primary returns the interfaces whose lease says that they are Azure's primary
// one.
func (s *Snapshot) Primary() []string {
	var names []string
	for name, l := range s.Leases() {
		if slices.ContainsFunc(hostRoutes, func(p netip.Prefix) bool { return slices.Contains(l.Routes, p) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// pick returns the interface to look at where none is named: the one that Azure
// calls primary. That is the one whose lease says so, of several the one with the
// preferred default route. If none does and not all have a lease, it can be one
// that should have the lease: the first of hardware that lacks it. Else the one
// with the default route, or the first that there is.
func (s *Snapshot) pick() string {
	primary, leases := s.Primary(), s.Leases()
	for _, name := range s.Kernel.DefaultRoutes {
		if slices.Contains(primary, name) {
			return name
		}
	}
	if len(primary) > 0 {
		return primary[0]
	}
	links := slices.DeleteFunc(slices.Clone(s.Kernel.Links), func(l Link) bool { return !l.Ethernet })
	slices.SortStableFunc(links, func(a, b Link) int {
		switch {
		case a.Hardware == b.Hardware:
			return 0
		case a.Hardware:
			return -1
		}
		return 1
	})
	for _, l := range links {
		if l.Hardware && leases[l.Name] == nil && s.asks(l.Name) && anySecondary(leases) {
			return l.Name
		}
	}
	switch {
	case len(s.Kernel.DefaultRoutes) > 0:
		return s.Kernel.DefaultRoutes[0]
	case len(links) > 0:
		return links[0].Name
	}
	return ""
}

// asks reports whether an interface is one that should have a lease.
func (s *Snapshot) asks(iface string) bool {
	d, known := s.NM.V.Device(iface)
	if known {
		return d.Managed && !d.External
	}
	return slices.ContainsFunc(s.Networkd.V, func(l networkd.Link) bool { return l.Name == iface && l.Managed && l.Master == 0 })
}

// anySecondary reports whether a lease there is belongs to no primary interface.
func anySecondary(leases map[string]*nm.Lease) bool {
	for _, l := range leases {
		if !l.Primary() {
			return true
		}
	}
	return false
}
