package doctor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Remedies and their commands.
const (
	firewall = "check for a rule that blocks TCP port 80 of that address, also in a network appliance on the way"
	ruleset  = "sudo nft list ruleset"
	asRoot   = "sudo nm-azure-dispatch doctor"
	busyHost = "wait some minutes, the host answers like this while it is being updated; if it continues, stop and start the VM"
	askOwner = "ask the operator of the DHCP server why option 245 is not Azure's"
	proxy    = "something else answers in the WireServer's place, mostly a proxy that must exclude this address; its answer"
	metadata = "a firewall or a proxy refuses it, or the VM was created with Metadata Security Protocol enforced, " +
		"which only lets Azure's Guest Proxy Agent through: install that, or turn the protocol off for the VM"
)

// reached reports whether the WireServer answers at either address.
func reached(s *machine.Snapshot) bool { return s.Probes.GoalState.Err == nil || reachedDefault(s) }

// reachedDefault reports whether the default address answers, and the lease names another.
func reachedDefault(s *machine.Snapshot) bool {
	return s.Target().Server != wire.DefaultAddr && s.Probes.Default.Err == nil
}

func otherAddress(step, seen string) Step {
	return warn(step+"-other-address", fmt.Sprintf("%s; but the default address %s answers, which is tried too", seen, wire.DefaultAddr), askOwner)
}

func tcp(s *machine.Snapshot) Step {
	to, err := s.Target().Server, s.Probes.Unreached()
	seen := fmt.Sprintf("%s port 80: %v", to, err)
	switch {
	case err == nil:
		return ok(fmt.Sprintf("%s port 80 accepts connections", to))
	case reachedDefault(s):
		return otherAddress("tcp", seen)
	case errors.Is(err, os.ErrPermission):
		return fail("tcp-blocked", seen, firewall, ruleset)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail("tcp-refused", seen, "wait a minute, the host may be busy with an update; then check what rejects or redirects it", ruleset)
	case s.User != 0:
		return fail("tcp-no-answer", seen, "ask again as root, a firewall may let only root through", asRoot)
	}
	return fail("tcp-no-answer", seen, firewall, ruleset)
}

func goalState(s *machine.Snapshot) Step {
	to, g, err := s.Target().Server, s.Probes.GoalState.V, s.Probes.GoalState.Err
	if err == nil {
		return ok(fmt.Sprintf("incarnation %s, container %s", g.Incarnation, g.ContainerID))
	}
	seen := strings.TrimPrefix(err.Error(), "wire: ")
	curl := "curl -sH x-ms-version:2012-11-30 'http://" + to.String() + "/machine/?comp=goalstate'"
	status, refused := errors.AsType[*wire.StatusError](err)
	switch {
	case reachedDefault(s):
		return otherAddress("goal-state", to.String()+": "+seen)
	case refused && strings.Contains(strings.ToLower(status.Body), "<html"):
		return fail("goal-state-proxy", seen, proxy, curl)
	case refused && status.Code == 403 && s.User != 0:
		return fail("goal-state-forbidden", seen, "ask again as root", asRoot)
	case refused && status.Code == 403:
		return fail("goal-state-forbidden", seen, metadata)
	case refused:
		return fail("goal-state-busy", seen, busyHost)
	case !isNetwork(err):
		return fail("goal-state-foreign", seen, proxy, curl)
	case s.Probes.Small.Err == nil:
		return fail("goal-state-mtu", seen+"; it answers in small packets only: something on the way drops full ones",
			"lower the MTU, and find out what drops packets of 1500 bytes", "sudo ip link set "+shell(s.Probes.Route.V.Interface)+" mtu 1400")
	}
	return fail("goal-state-no-answer", seen, busyHost)
}

// isNetwork reports whether the connection failed, and not the document.
func isNetwork(err error) bool {
	_, network := errors.AsType[net.Error](err) // also an errno
	_, late := errors.AsType[machine.NoAnswer](err)
	return network || late
}

// mainTable is the default routing table of NetworkManager and systemd-networkd.
const mainTable = 254

// route checks the kernel's route if the WireServer cannot be reached; otherwise any
// route is ok.
func route(s *machine.Snapshot) Step {
	to, r, err := s.Target().Server, s.Probes.Route.V, s.Probes.Route.Err
	via, next := "", to
	if r.Gateway.IsValid() {
		via, next = " via "+r.Gateway.String(), r.Gateway
	}
	seen := fmt.Sprintf("%s%s on %s from %s", to, via, r.Interface, r.Source)
	l, leased := s.LeaseOf(r.Interface), s.Leased()
	switch {
	case err != nil && s.Probes.Unreached() != nil:
		return noRoute(s, err)
	case err != nil:
		return ok(fmt.Sprintf("%s accepts connections", to))
	case s.Probes.Unreached() == nil:
		return ok(seen)
	case r.Table != mainTable && r.Table != 0:
		return fail("route-rule", fmt.Sprintf("%s, by table %d", seen, r.Table),
			"a routing rule sends it there: find out who made it", "ip rule", fmt.Sprintf("ip route show table %d", r.Table))
	case len(leased) > 0 && leased[0].Lease.HostRoute() && (l == nil || !l.HostRoute()):
		return wrongNIC(s, seen, leased[0].Interface)
	case next != to && l != nil && len(l.Routers) > 0 && !slices.Contains(l.Routers, next):
		return fail("route-gateway", seen+"; the lease's gateway is "+list(l.Routers),
			"remove the route, then configure those of the lease again", fmt.Sprintf("sudo ip route del %s via %s", to, next), again(s))
	case l != nil && l.Address.IsValid() && l.Address != r.Source:
		return warn("route-source", fmt.Sprintf("%s, not from the lease's %s: Azure may answer the primary address only", seen, l.Address),
			"put the lease's address first", "ip address show "+shell(r.Interface))
	}
	for _, n := range s.Kernel.Neighbours {
		switch {
		case n.Addr != next || n.Interface != r.Interface:
		case n.Permanent:
			return fail("route-neighbour", fmt.Sprintf("%s; the hardware address of %s was set by hand", seen, next),
				"remove it: the kernel then asks", fmt.Sprintf("sudo ip neigh del %s dev %s", next, shell(r.Interface)))
		case !n.Complete:
			return fail("route-neighbour-silent", fmt.Sprintf("%s; %s does not answer ARP", seen, next),
				"check the gateway, and that the address of this machine is the one that Azure gave it", "ip neigh show "+next.String())
		}
	}
	return ok(seen)
}

// noRoute finds why there is no route: a setting of the profile, a rule or route that
// rejects packets, or missing routes.
func noRoute(s *machine.Snapshot, err error) Step {
	to := s.Target().Server
	d, _ := s.Device()
	p := d.Profile
	rejects := map[syscall.Errno]string{syscall.EACCES: "prohibit", syscall.EINVAL: "blackhole", syscall.EHOSTUNREACH: "unreachable"}
	errno, _ := errors.AsType[syscall.Errno](err)
	kind := rejects[errno]
	setting, value, manager := "", "", "NetworkManager"
	if s.ByNetworkd() {
		manager = "systemd-networkd"
	}
	switch {
	case kind != "":
		return fail("route-rejects", fmt.Sprintf("a routing rule or route of type %s keeps packets from %s", kind, to),
			"find it and remove it", "ip rule", "ip route show table all type "+kind)
	case errno != syscall.ENETUNREACH:
		return warn("route-unknown", fmt.Sprintf("the kernel does not say how it sends to %s: %v", to, err), "ask it", "ip route get "+to.String())
	case p.RouteTable != 0 && p.RouteTable != mainTable:
		setting, value = fmt.Sprintf("ipv4.route-table=%d", p.RouteTable), "ipv4.route-table 0"
	case p.IgnoreAutoRoutes:
		setting, value = "ipv4.ignore-auto-routes", "ipv4.ignore-auto-routes no"
	case p.NeverDefault:
		setting, value = "ipv4.never-default", "ipv4.never-default no"
	default:
		return fail("route-missing", fmt.Sprintf("no route to %s: %v", to, err), "make "+manager+" configure the routes again", reconfigure(s))
	}
	return fail("route-profile", fmt.Sprintf("no route to %s: the profile %q has %s", to, p.Name, setting),
		"remove the setting", modify(p.Name, value)...)
}

// wrongNIC returns the step of a route over another interface than the one whose
// lease has the route.
func wrongNIC(s *machine.Snapshot, seen, primary string) Step {
	const code = "route-wrong-nic"
	iface, defaults := s.Probes.Route.V.Interface, s.Kernel.DefaultRoutes
	d, _ := s.NM.V.Device(primary)
	other, _ := s.NM.V.Device(iface)
	seen += fmt.Sprintf("; Azure answers %s only, whose lease has the route", primary)
	switch {
	case d.Profile.IgnoreAutoRoutes:
		return fail(code, fmt.Sprintf("%s, and whose profile %q has ipv4.ignore-auto-routes", seen, d.Profile.Name),
			"remove the setting", modify(d.Profile.Name, "ipv4.ignore-auto-routes no")...)
	case !slices.Contains(defaults, primary):
		return fail(code, seen+", but which has no default route", "configure its routes again", reconfigure(s))
	case defaults[0] == iface && other.Profile.Name != "":
		return fail(code, seen+"; the default route of "+iface+" is preferred",
			"give it a higher metric than that of "+primary, modify(other.Profile.Name, "ipv4.route-metric 500")...)
	}
	return fail(code, seen, "find the route in use, and remove it or give it a higher metric", "ip route show table all match "+s.Target().Server.String())
}
