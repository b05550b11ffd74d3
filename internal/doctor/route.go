package doctor

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// mainTable is the routing table that NetworkManager and systemd-networkd use
// unless they are told otherwise.
const mainTable = 254

// route judges the kernel's own answer.
func route(s *machine.Snapshot) result {
	to, r := s.Target().Server, s.Probes.Route.V
	if err := s.Probes.Route.Err; err != nil {
		return noRoute(s, err)
	}
	seen := fmt.Sprintf("%s on %s from %s", to, r.Interface, r.Source)
	if r.Gateway.IsValid() {
		seen = fmt.Sprintf("%s via %s on %s from %s", to, r.Gateway, r.Interface, r.Source)
	}
	leases := s.Leases()
	l, primary := leases[r.Interface], s.Primary()
	if s.Probes.TCP.Err == nil { // whatever the route is, it leads there
		return ok(seen)
	}
	switch {
	case r.Table != mainTable && r.Table != 0:
		return fail("route-rule", seen+fmt.Sprintf(", by table %d (rules of priority %v)", r.Table, r.Rules), "a routing rule sends it there: find out who made it", "ip rule", fmt.Sprintf("ip route show table %d", r.Table))
	case len(primary) > 0 && !slices.Contains(primary, r.Interface):
		return wrongNIC(s, seen, primary[0])
	case r.Gateway.IsValid() && l != nil && len(l.Routers) > 0 && !slices.Contains(l.Routers, r.Gateway):
		return fail("route-gateway", seen+"; the lease's gateway is "+join(l.Routers), "remove the route, then have the lease's set again", fmt.Sprintf("sudo ip route del %s via %s", to, r.Gateway), again(s))
	case l != nil && l.Address.IsValid() && l.Address != r.Source:
		return warn("route-source", seen+fmt.Sprintf(", not from the lease's %s: Azure may answer the primary address only", l.Address), "put the lease's address first", "ip address show "+shell(r.Interface))
	}
	for _, n := range s.Kernel.Neighbours {
		next := r.Gateway
		if !next.IsValid() {
			next = to
		}
		if n.Addr != next || n.Interface != r.Interface {
			continue
		}
		if n.Permanent {
			return fail("route-neighbour", seen+"; the hardware address of "+next.String()+" was set by hand", "remove it: the kernel then asks", fmt.Sprintf("sudo ip neigh del %s dev %s", next, shell(r.Interface)))
		}
		if !n.Complete {
			return fail("route-neighbour-silent", seen+"; "+next.String()+" does not answer ARP", "check the gateway, and that the address of this machine is the one that Azure gave it", "ip neigh show "+next.String())
		}
	}
	return ok(seen)
}

// noRoute names what keeps the kernel from sending: a setting of the profile, a
// rule or a route that says so, or routes that are missing.
func noRoute(s *machine.Snapshot, err error) result {
	to, d := s.Target().Server, s.Profile()
	rules := s.Probes.Route.V.Rules
	seen := fmt.Sprintf("no route to %s", to)
	why := map[error]string{syscall.EACCES: "prohibit", syscall.EINVAL: "blackhole", syscall.EHOSTUNREACH: "unreachable"}
	for errno, kind := range why {
		if errors.Is(err, errno) && len(rules) > 0 {
			return fail("route-rule", fmt.Sprintf("a routing rule or route of type %s keeps packets from %s (rules of priority %v)", kind, to, rules), "find it and remove it", "ip rule", "ip route show table all type "+kind)
		}
		if errors.Is(err, errno) {
			return fail("route-rejects", fmt.Sprintf("a route of type %s keeps packets from %s", kind, to), "find it and remove it", "ip route show table all type "+kind)
		}
	}
	for _, p := range []struct {
		set            bool
		setting, clear string
	}{
		{d.RouteTable != 0 && d.RouteTable != mainTable, fmt.Sprintf("ipv4.route-table=%d", d.RouteTable), "ipv4.route-table 0"},
		{d.IgnoreAutoRoutes, "ipv4.ignore-auto-routes", "ipv4.ignore-auto-routes no"},
		{d.NeverDefault, "ipv4.never-default", "ipv4.never-default no"},
	} {
		if p.set {
			return fail("route-profile", fmt.Sprintf("%s: the profile %q has %s", seen, d.Name, p.setting), "take the setting out", modify(d.Name, p.clear)...)
		}
	}
	if s.ByNetworkd() {
		return fail("route-missing", fmt.Sprintf("%s: %v", seen, err), "have systemd-networkd set the routes again", "sudo networkctl reconfigure "+shell(s.Interface))
	}
	return fail("route-missing", fmt.Sprintf("%s: %v", seen, err), "have NetworkManager set the routes again", again(s))
}

// wrongNIC is for packets that leave by another interface than the one whose
// lease has the route.
func wrongNIC(s *machine.Snapshot, seen, primary string) result {
	seen += fmt.Sprintf("; Azure answers %s only, whose lease has the route", primary)
	d, _ := s.NM.V.Device(primary)
	if d.Profile.IgnoreAutoRoutes {
		return fail("route-wrong-nic", seen+fmt.Sprintf(", and whose profile %q has ipv4.ignore-auto-routes", d.Profile.Name),
			"take the setting out", modify(d.Profile.Name, "ipv4.ignore-auto-routes no")...)
	}
	iface := s.Probes.Route.V.Interface
	other, known := s.NM.V.Device(iface)
	seen += fmt.Sprintf(": the route of %s has the lower metric", iface)
	if !known {
		return fail("route-wrong-nic", seen, "give it a higher one, RouteMetric= in its .network file; the routes are", "ip route")
	}
	return fail("route-wrong-nic", seen, "give it a higher one, ipv4.route-metric in its profile", modify(other.Profile.Name, "ipv4.route-metric 500")...)
}
