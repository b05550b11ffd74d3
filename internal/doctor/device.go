package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func device(_ context.Context, env *Env) result {
	iface := env.Interface
	if iface == "" {
		return fail("the machine has no network interface", "look at them all", "ip link")
	}
	d, known := env.nm.Device(iface)
	if !known {
		return fail("NetworkManager does not know "+iface, "name another with --interface; it knows", "nmcli device")
	}
	env.device = d
	state := fmt.Sprintf("%s is %s", iface, stateName(d.State))
	if d.Profile != "" {
		state += fmt.Sprintf(", profile %q", d.Profile)
	}
	switch {
	case !d.Managed || d.State == live.StateUnmanaged:
		return fail(iface+" is not managed by NetworkManager", "let it, and take the interface out of unmanaged-devices in NetworkManager.conf", "sudo nmcli device set "+shell(iface)+" managed yes")
	case d.State == live.StateUnavailable:
		return fail(iface+" has no carrier, or is not up", "look at the link", "ip link show "+shell(iface))
	case d.External:
		return warn(state+", but was set up by somebody else before NetworkManager came, which then asks no DHCP server", "let NetworkManager do it", "sudo nmcli device connect "+shell(iface))
	case d.State == live.StateDisconnected && !noAddress(d.Reason):
		return fail(fmt.Sprintf("%s, reason %d", state, d.Reason), "connect it", "sudo nmcli device connect "+shell(iface))
	}
	return ok(state)
}

// noAddress reports whether a device stands still because no DHCP server has
// answered, which is for the step behind to say: NMDeviceStateReason
// IP_CONFIG_UNAVAILABLE, DHCP_START_FAILED, DHCP_ERROR and DHCP_FAILED.
func noAddress(reason uint32) bool { return reason == 5 || reason >= 15 && reason <= 17 }

func stateName(state uint32) string {
	switch state {
	case live.StateDisconnected:
		return "disconnected"
	case live.StateActivated:
		return "activated"
	case 110:
		return "being deactivated"
	case 120:
		return "not to be activated: that failed"
	}
	return "being activated"
}

func lease(_ context.Context, env *Env) result {
	d := env.device
	profile := shell(d.Profile)
	switch {
	case d.Lease == nil && d.External:
		return skip("NetworkManager asks no DHCP server where somebody else has set an interface up")
	case d.Lease == nil && d.Method != "" && d.Method != "auto":
		return warn(fmt.Sprintf("no DHCPv4: the profile %q has ipv4.method=%s", d.Profile, d.Method),
			"Azure wants DHCP", "sudo nmcli connection modify "+profile+" ipv4.method auto", "sudo nmcli connection up "+profile)
	case d.Lease == nil:
		return fail("no DHCPv4 lease: no DHCP server has answered on "+env.Interface,
			"look for what keeps UDP ports 67 and 68 out, then ask again", "sudo nmcli device connect "+shell(env.Interface))
	}
	l := *d.Lease
	seen := fmt.Sprintf("%s, nameservers %s", l.Address, join(l.Nameservers))
	if len(l.Nameservers) == 0 {
		return warn(fmt.Sprintf("%s, without any nameserver", l.Address), "set some in the virtual network, or in the profile", "sudo nmcli connection modify "+profile+" ipv4.dns "+azureDNS, "sudo nmcli connection up "+profile)
	}
	if !l.Primary() {
		return warn(seen+"; no default route and no route to the WireServer: not the lease of a primary NIC", "name the primary one with --interface; these there are", "nmcli device")
	}
	return ok(seen)
}

func option245(_ context.Context, env *Env) result {
	if env.device.Lease == nil {
		return skip("there is no lease, so the constant " + wire.DefaultAddr.String() + " counts")
	}
	t := dispatch.TargetOf(env.Interface, *env.device.Lease, env.OwnAddrs)
	const remedy = "nothing is to be done on Azure if the steps behind are ok; else ask who runs the DHCP server"
	switch {
	case t.Why != "":
		return warn(fmt.Sprintf("%s; the constant %s counts", t.Why, t.Server), remedy)
	case t.Server != wire.DefaultAddr:
		return warn(fmt.Sprintf("%s (%s), not Azure's constant %s", t.Server, env.device.Option245, wire.DefaultAddr), remedy)
	}
	return ok(fmt.Sprintf("%s (%s)", t.Server, env.device.Option245))
}

func join(servers []netip.Addr) string {
	s := make([]string, len(servers))
	for i, a := range servers {
		s[i] = a.String()
	}
	return strings.Join(s, " ")
}
