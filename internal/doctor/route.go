package doctor

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// mainTable is the default routing table of NetworkManager and systemd-networkd.
const mainTable = 254

// route checks the kernel's route if the WireServer cannot be reached; otherwise any
// route is ok.
func route(s *machine.Snapshot) Step {
	to, r, err := s.Target().Server, s.Probes.Route.V, s.Probes.Route.Err
	if err != nil && s.Probes.TCP.Err != nil {
		return noRoute(s, err)
	}
	if err != nil {
		return ok(fmt.Sprintf("%s accepts connections", to))
	}
	seen := fmt.Sprintf("%s on %s from %s", to, r.Interface, r.Source)
	next := to
	if r.Gateway.IsValid() {
		seen = fmt.Sprintf("%s via %s on %s from %s", to, r.Gateway, r.Interface, r.Source)
		next = r.Gateway
	}
	l, primary := s.Leases()[r.Interface], s.Primary()
	switch {
	case s.Probes.TCP.Err == nil:
		return ok(seen)
	case r.Table != mainTable && r.Table != 0:
		return fail("route-rule", seen+fmt.Sprintf(", by table %d (rules of priority %v)", r.Table, r.Rules), "a routing rule sends it there: find out who made it", "ip rule", fmt.Sprintf("ip route show table %d", r.Table))
	case len(primary) > 0 && !slices.Contains(primary, r.Interface):
		return wrongNIC(s, seen, primary[0])
	case r.Gateway.IsValid() && l != nil && len(l.Routers) > 0 && !slices.Contains(l.Routers, r.Gateway):
		return fail("route-gateway", seen+"; the lease's gateway is "+list(l.Routers), "remove the route, then configure those of the lease again", fmt.Sprintf("sudo ip route del %s via %s", to, r.Gateway), again(s))
	case l != nil && l.Address.IsValid() && l.Address != r.Source:
		return warn("route-source", seen+fmt.Sprintf(", not from the lease's %s: Azure may answer the primary address only", l.Address), "put the lease's address first", "ip address show "+shell(r.Interface))
	}
	i := slices.IndexFunc(s.Kernel.Neighbours, func(n machine.Neighbour) bool { return n.Addr == next && n.Interface == r.Interface })
	switch {
	case i >= 0 && s.Kernel.Neighbours[i].Permanent:
		return fail("route-neighbour", fmt.Sprintf("%s; the hardware address of %s was set by hand", seen, next), "remove it: the kernel then asks", fmt.Sprintf("sudo ip neigh del %s dev %s", next, shell(r.Interface)))
	case i >= 0 && !s.Kernel.Neighbours[i].Complete:
		return fail("route-neighbour-silent", fmt.Sprintf("%s; %s does not answer ARP", seen, next), "check the gateway, and that the address of this machine is the one that Azure gave it", "ip neigh show "+next.String())
	}
	return ok(seen)
}

// noRoute finds why there is no route: a setting of the profile, a rule or route that
// rejects packets, or missing routes.
func noRoute(s *machine.Snapshot, err error) Step {
	to := s.Target().Server
	d, _ := s.Device()
	rules := s.Probes.Route.V.Rules
	for errno, kind := range map[syscall.Errno]string{syscall.EACCES: "prohibit", syscall.EINVAL: "blackhole", syscall.EHOSTUNREACH: "unreachable"} {
		show := "ip route show table all type " + kind
		switch {
		case !errors.Is(err, errno):
		case len(rules) > 0:
			return fail("route-rule", fmt.Sprintf("a routing rule or route of type %s keeps packets from %s (rules of priority %v)", kind, to, rules), "find it and remove it", "ip rule", show)
		default:
			return fail("route-rejects", fmt.Sprintf("a route of type %s keeps packets from %s", kind, to), "find it and remove it", show)
		}
	}
	if !errors.Is(err, syscall.ENETUNREACH) {
		return warn("route-unknown", fmt.Sprintf("the kernel does not say how it sends to %s: %v", to, err), "ask it", "ip route get "+to.String())
	}
	seen := fmt.Sprintf("no route to %s", to)
	for _, p := range []struct {
		set            bool
		setting, clear string
	}{
		{d.Profile.RouteTable != 0 && d.Profile.RouteTable != mainTable, fmt.Sprintf("ipv4.route-table=%d", d.Profile.RouteTable), "ipv4.route-table 0"},
		{d.Profile.IgnoreAutoRoutes, "ipv4.ignore-auto-routes", "ipv4.ignore-auto-routes no"},
		{d.Profile.NeverDefault, "ipv4.never-default", "ipv4.never-default no"},
	} {
		if p.set {
			return fail("route-profile", fmt.Sprintf("%s: the profile %q has %s", seen, d.Profile.Name, p.setting), "remove the setting", modify(d.Profile.Name, p.clear)...)
		}
	}
	manager := "NetworkManager"
	if s.ByNetworkd() {
		manager = "systemd-networkd"
	}
	return fail("route-missing", fmt.Sprintf("%s: %v", seen, err), "make "+manager+" configure the routes again", reconfigure(s))
}

// wrongNIC returns the step of a route over another interface than the one whose
// lease has the route.
func wrongNIC(s *machine.Snapshot, seen, primary string) Step {
	seen += fmt.Sprintf("; Azure answers %s only, whose lease has the route", primary)
	d, _ := s.NM.V.Device(primary)
	if d.Profile.IgnoreAutoRoutes {
		return fail("route-wrong-nic", seen+fmt.Sprintf(", and whose profile %q has ipv4.ignore-auto-routes", d.Profile.Name),
			"remove the setting", modify(d.Profile.Name, "ipv4.ignore-auto-routes no")...)
	}
	if !slices.Contains(s.Kernel.DefaultRoutes, primary) {
		return fail("route-wrong-nic", seen+", but which has no default route", "configure its routes again", reconfigure(s))
	}
	iface := s.Probes.Route.V.Interface
	other, known := s.NM.V.Device(iface)
	seen += fmt.Sprintf(": the route of %s has the lower metric", iface)
	if !known {
		return fail("route-wrong-nic", seen, "give it a higher one, RouteMetric= in its .network file; the routes are", "ip route")
	}
	return fail("route-wrong-nic", seen, "give it a higher one, ipv4.route-metric in its profile", modify(other.Profile.Name, "ipv4.route-metric 500")...)
}
