package doctor

import (
	"errors"
	"fmt"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func device(s *machine.Snapshot) Step {
	iface := s.Interface
	d, known := s.Device()
	state := fmt.Sprintf("%s is %s", iface, stateName(d.State))
	if d.Profile.Name != "" {
		state += fmt.Sprintf(", profile %q", d.Profile.Name)
	}
	switch {
	case iface == "":
		return fail("no-interface", "the machine has no network interface", "list all interfaces", "ip link")
	case s.ByNetworkd():
		return deviceNetworkd(s)
	case !known:
		return fail("device-unknown", "NetworkManager does not know "+iface, "name another with --interface; it knows", "nmcli device")
	case d.State == nm.StateUnavailable:
		return fail("device-no-carrier", iface+" has no carrier, or is not up", "check the link", "ip link show "+shell(iface))
	case (!d.Managed || d.State == nm.StateUnmanaged) && s.Conf.Unmanaged != "":
		return fail("device-unmanaged", fmt.Sprintf("%s is not managed by NetworkManager; /%s has unmanaged-devices", iface, s.Conf.Unmanaged),
			"take the interface out of unmanaged-devices there, then", "sudo nmcli general reload conf", "sudo nmcli device set "+shell(iface)+" managed yes")
	case !d.Managed || d.State == nm.StateUnmanaged:
		return fail("device-unmanaged", iface+" is not managed by NetworkManager", "have NetworkManager manage it", "sudo nmcli device set "+shell(iface)+" managed yes")
	case d.External:
		return warn("device-external", state+", but was configured by something else before NetworkManager started, which then asks no DHCP server", "have NetworkManager configure it", "sudo nmcli device connect "+shell(iface))
	case d.State == nm.StateDisconnected && !noAddress(d.Reason):
		return fail("device-disconnected", state+reasonText(d.Reason), "connect it", "sudo nmcli device connect "+shell(iface))
	}
	return ok(state)
}

func deviceNetworkd(s *machine.Snapshot) Step {
	l := s.NetworkdLink(s.Interface)
	switch {
	case s.Networkd.Err != nil && !errors.Is(s.Networkd.Err, networkd.ErrNotRunning):
		return fail("networkd-no-answer", s.Networkd.Err.Error(), "restart it", "sudo systemctl restart "+machine.UnitNetworkd)
	case s.Networkd.Err != nil:
		return fail("networkd-stopped", s.Networkd.Err.Error(), "start it", "sudo systemctl enable --now "+machine.UnitNetworkd)
	case !l.Managed:
		return fail("device-unmanaged", "no .network file applies to "+s.Interface, "write one with DHCP=ipv4 to /etc/systemd/network, then", "sudo networkctl reload")
	case l.OperState == "no-carrier" || l.OperState == "off":
		return fail("device-no-carrier", s.Interface+" is "+l.OperState, "check the link", "networkctl status "+shell(s.Interface))
	}
	return ok(fmt.Sprintf("%s is %s, %s by systemd-networkd", s.Interface, l.OperState, l.AdminState))
}

// noAddress reports whether a device is disconnected because no DHCP server has
// answered, which the next step reports: NMDeviceStateReason
// IP_CONFIG_UNAVAILABLE, DHCP_START_FAILED, DHCP_ERROR and DHCP_FAILED.
func noAddress(reason uint32) bool { return reason == 5 || reason >= 15 && reason <= 17 }

// reasonText has texts for common reasons of a state.
func reasonText(reason uint32) string {
	texts := map[uint32]string{
		0: "", 1: "", 7: ": it lacks a password", 36: ": it was removed", 38: ": its profile was deleted", 39: ": a user disconnected it", 40: ": the carrier changed",
	}
	if text, known := texts[reason]; known {
		return text
	}
	return fmt.Sprintf(" (NMDeviceStateReason %d)", reason)
}

func stateName(state uint32) string {
	switch state {
	case nm.StateDisconnected:
		return "disconnected"
	case nm.StateActivated:
		return "activated"
	case 110:
		return "being deactivated"
	case 120:
		return "not activated: that failed"
	}
	return "being activated"
}

// reached reports whether the WireServer answers at either address.
func reached(s *machine.Snapshot) bool {
	return s.Probes.GoalState.Err == nil || s.Target().Server != wire.DefaultAddr && s.Probes.Default.Err == nil
}

func lease(s *machine.Snapshot) Step {
	l := s.Lease()
	switch {
	case l == nil && s.ByNetworkd():
		return noLeaseNetworkd(s)
	case l == nil:
		return noLease(s)
	case len(l.Nameservers) == 0:
		return warn("lease-no-nameservers", fmt.Sprintf("%s, without any nameserver", l.Address), "set DNS servers in the virtual network, if that is not intended")
	}
	seen := fmt.Sprintf("%s, nameservers %s", l.Address, list(l.Nameservers))
	if !l.Primary() {
		return warn("lease-secondary", seen+"; no default route and no route to the WireServer: not the lease of a primary NIC", "select the primary one with --interface; all interfaces", "ip link")
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
		return fail("dhcp-off", seen+", and the WireServer does not answer", "use DHCP: the address must be the one that Azure gave this machine", run...)
	}
	return fail("no-lease", "no DHCPv4 lease: no DHCP server has answered on "+s.Interface,
		"check what blocks UDP ports 67 and 68, then ask again", "sudo nmcli device connect "+shell(s.Interface))
}

func noLeaseNetworkd(s *machine.Snapshot) Step {
	l := s.NetworkdLink(s.Interface)
	switch {
	case !reached(s):
		return fail("no-lease", "no DHCPv4 lease on "+s.Interface, "set DHCP=ipv4 in its .network file, and check what blocks UDP ports 67 and 68; then ask again", reconfigure(s))
	case !l.DHCP:
		return warn("dhcp-off", "no DHCPv4 lease, and none is needed to reach the WireServer", "Azure expects DHCP: set DHCP=ipv4 in the .network file of "+s.Interface+", then", "sudo networkctl reload")
	}
	return warn("no-lease", "systemd-networkd has no lease on "+s.Interface+": after a restart it has none until a DHCP server answers", "ask the DHCP server again", reconfigure(s))
}

func option245(s *machine.Snapshot) Step {
	l, t := s.Lease(), s.Target()
	if l == nil {
		return skip("no-lease", fmt.Sprintf("there is no lease, so the default address %s is used", wire.DefaultAddr))
	}
	const remedy = "no action is required on Azure if the next steps are ok; otherwise ask the operator of the DHCP server"
	seen := t.Server.String()
	switch {
	case l.WireServerErr == networkd.ErrOption245Unknown:
		return ok(fmt.Sprintf("%v: the default address %s is used", l.WireServerErr, t.Server))
	case t.Why != "":
		return warn("option-245-unusable", fmt.Sprintf("%s; the default address %s is used", t.Why, t.Server), remedy)
	case t.Server != wire.DefaultAddr:
		return warn("option-245-other", fmt.Sprintf("%s, not Azure's default address %s", seen, wire.DefaultAddr), remedy)
	}
	return ok(seen)
}
