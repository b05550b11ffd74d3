package doctor

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Texts for NMDeviceState and for common values of NMDeviceStateReason.
var (
	states = map[uint32]string{
		nm.StateDisconnected: "disconnected", nm.StateActivated: "activated", 110: "being deactivated", 120: "not activated: that failed",
	}
	reasons = map[uint32]string{
		0: "", 1: "", 7: ": it lacks a password", 36: ": it was removed", 38: ": its profile was deleted",
		39: ": a user disconnected it", 40: ": the carrier changed",
	}
)

func device(s *machine.Snapshot) Step {
	iface := s.Interface
	d, known := s.Device()
	state := fmt.Sprintf("%s is %s", iface, cmp.Or(states[d.State], "being activated"))
	if d.Profile.Name != "" {
		state += fmt.Sprintf(", profile %q", d.Profile.Name)
	}
	unmanaged := !d.Managed || d.State == nm.StateUnmanaged
	manage := "sudo nmcli device set " + shell(iface) + " managed yes"
	switch {
	case iface == "":
		return fail("no-interface", "the machine has no network interface", "list all interfaces", "ip link")
	case s.ByNetworkd():
		return deviceNetworkd(s)
	case !known:
		return fail("device-unknown", "NetworkManager does not know "+iface, "name another with --interface; it knows", "nmcli device")
	case d.State == nm.StateUnavailable:
		return fail("device-no-carrier", iface+" has no carrier, or is not up", "check the link", "ip link show "+shell(iface))
	case unmanaged && s.Conf.Unmanaged != "":
		return fail("device-unmanaged", fmt.Sprintf("%s is not managed by NetworkManager; /%s has unmanaged-devices", iface, s.Conf.Unmanaged),
			"take the interface out of unmanaged-devices there, then", "sudo nmcli general reload conf", manage)
	case unmanaged:
		return fail("device-unmanaged", iface+" is not managed by NetworkManager", "have NetworkManager manage it", manage)
	case d.External:
		return warn("device-external", state+", but was configured by something else before NetworkManager started, "+
			"which then asks no DHCP server", "have NetworkManager configure it", connect(s))
	case d.State == nm.StateDisconnected && !noAddress(d.Reason):
		why, known := reasons[d.Reason]
		if !known {
			why = fmt.Sprintf(" (NMDeviceStateReason %d)", d.Reason)
		}
		return fail("device-disconnected", state+why, "connect it", connect(s))
	}
	return ok(state)
}

// connect returns the command that activates a profile, and queries the DHCP server.
func connect(s *machine.Snapshot) string { return "sudo nmcli device connect " + shell(s.Interface) }

// noAddress reports whether a device is disconnected because no DHCP server has
// answered, which the next step reports: NMDeviceStateReason
// IP_CONFIG_UNAVAILABLE, DHCP_START_FAILED, DHCP_ERROR and DHCP_FAILED.
func noAddress(reason uint32) bool { return reason == 5 || reason >= 15 && reason <= 17 }

func deviceNetworkd(s *machine.Snapshot) Step {
	l, err := s.NetworkdLink(s.Interface), s.Networkd.Err
	switch {
	case errors.Is(err, networkd.ErrNotRunning):
		return fail("networkd-stopped", err.Error(), "start it", enable(s, machine.UnitNetworkd)...)
	case err != nil:
		return fail("networkd-no-answer", err.Error(), "restart it", "sudo systemctl restart "+machine.UnitNetworkd)
	case !l.Managed:
		return fail("device-unmanaged", "no .network file applies to "+s.Interface,
			"write one with DHCP=ipv4 to /etc/systemd/network, then", "sudo networkctl reload")
	case l.OperState == "no-carrier" || l.OperState == "off":
		return fail("device-no-carrier", s.Interface+" is "+l.OperState, "check the link", "networkctl status "+shell(s.Interface))
	}
	return ok(fmt.Sprintf("%s is %s, %s by systemd-networkd", s.Interface, l.OperState, l.AdminState))
}

func lease(s *machine.Snapshot) Step {
	l := s.Lease()
	switch {
	case l == nil && s.ByNetworkd():
		return noLeaseNetworkd(s)
	case l == nil:
		return noLease(s)
	case len(l.Nameservers) == 0:
		return warn("lease-no-nameservers", fmt.Sprintf("%s, without any nameserver", l.Address),
			"set DNS servers in the virtual network, if that is not intended")
	}
	seen := fmt.Sprintf("%s, nameservers %s", l.Address, list(l.Nameservers))
	if !l.Primary() {
		return warn("lease-secondary", seen+"; no default route and no route to the WireServer: not the lease of a primary NIC",
			"select the primary one with --interface; all interfaces", "ip link")
	}
	return ok(seen)
}

func noLease(s *machine.Snapshot) Step {
	d, _ := s.Device()
	method := d.Profile.Method
	seen := fmt.Sprintf("no DHCPv4: the profile %q has ipv4.method=%s", d.Profile.Name, method)
	settings := "ipv4.method auto"
	if method == "manual" {
		settings += " ipv4.gateway '' ipv4.addresses ''"
	}
	run := modify(d.Profile.Name, settings)
	switch off := method != "" && method != "auto"; {
	case d.External:
		return skip("device-external", "NetworkManager asks no DHCP server where something else has configured an interface")
	case off && reached(s):
		return warn("dhcp-off", seen, "Azure expects DHCP", run...)
	case off:
		return fail("dhcp-off", seen+", and the WireServer does not answer",
			"use DHCP: the address must be the one that Azure gave this machine", run...)
	}
	return fail("no-lease", "no DHCPv4 lease: no DHCP server has answered on "+s.Interface,
		"check what blocks UDP ports 67 and 68, then ask again", connect(s))
}

func noLeaseNetworkd(s *machine.Snapshot) Step {
	switch {
	case !reached(s):
		return fail("no-lease", "no DHCPv4 lease on "+s.Interface,
			"set DHCP=ipv4 in its .network file, and check what blocks UDP ports 67 and 68; then ask again", reconfigure(s))
	case !s.NetworkdLink(s.Interface).DHCP:
		return warn("dhcp-off", "no DHCPv4 lease, and none is needed to reach the WireServer",
			"Azure expects DHCP: set DHCP=ipv4 in the .network file of "+s.Interface+", then", "sudo networkctl reload")
	}
	return warn("no-lease", "systemd-networkd has no lease on "+s.Interface+": after a restart it has none until a DHCP server answers",
		"ask the DHCP server again", reconfigure(s))
}

func option245(s *machine.Snapshot) Step {
	l, t := s.Lease(), s.Target()
	const remedy = "no action is required on Azure if the next steps are ok; otherwise ask the operator of the DHCP server"
	switch {
	case l == nil:
		return skip("no-lease", fmt.Sprintf("there is no lease, so the default address %s is used", wire.DefaultAddr))
	case l.WireServerErr == networkd.ErrOption245Unknown:
		return ok(fmt.Sprintf("%v: the default address %s is used", l.WireServerErr, t.Server))
	case t.Why != "":
		return warn("option-245-unusable", fmt.Sprintf("%s; the default address %s is used", t.Why, t.Server), remedy)
	case t.Server != wire.DefaultAddr:
		return warn("option-245-other", fmt.Sprintf("%s, not Azure's default address %s", t.Server, wire.DefaultAddr), remedy)
	}
	return ok(t.Server.String())
}
