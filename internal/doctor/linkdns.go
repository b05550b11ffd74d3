package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
)

// linkDNS compares the nameservers in use with the wanted ones.
func linkDNS(s *machine.Snapshot) Step {
	switch {
	case s.Resolved.Err != nil && s.Conf.ResolvConf.Resolved():
		return skip("not-checked", "not checked: resolved failed")
	case s.ByNetworkd():
		return linkDNSNetworkd(s)
	case s.Resolved.Err != nil:
		return linkDNSFile(s)
	}
	view := s.LinkView(s.Interface)
	plan, want := dispatch.Decide(view), view.DNS.Nameservers
	have := view.Have.Addrs()
	code := plan.Reason.Code
	seen := fmt.Sprintf("systemd-resolved has %s, NetworkManager wants %s", list(have), list(want))
	reason := seen + ": " + plan.Reason.Text
	switch {
	case plan.Action == dispatch.ActPush && view.Primary:
		return fail(code, seen+": the hook has not configured them", "re-run the dispatcher hook", again(s))
	case plan.Action == dispatch.ActUndo:
		return warn(code, seen+": those that nm-azure-dispatch configured are no longer wanted", "re-run the dispatcher hook", again(s))
	case plan.Reason == dispatch.UpToDate || len(want) > 0 && view.Have.Contains(want):
		return ok(fmt.Sprintf("%s, from %s", list(have), source(view)))
	case plan.Reason == dispatch.OtherServers:
		return fail(code, reason, "remove them, unless they are intended", "sudo resolvectl revert "+shell(s.Interface), again(s))
	case plan.Reason == dispatch.GlobalServers:
		return warn(code, reason, "no action is required if they are intended", "resolvectl status")
	case len(have) > 0:
		return ok(fmt.Sprintf("%s; %s", list(have), plan.Reason.Text))
	case plan.Reason == dispatch.NotDefaultRoute:
		return warn(code, reason, "no action is required if another interface has them", "resolvectl dns")
	}
	return decided(s, plan, reason)
}

// decided returns the step of a link without nameservers that the hook does not
// change because of a setting. The remedy changes the setting. Only servers of the
// lease are recommended.
func decided(s *machine.Snapshot, plan dispatch.Plan, seen string) Step {
	d, _ := s.Device()
	p, l, code := d.Profile, s.Lease(), plan.Reason.Code
	const keep = "; to keep it, name the servers in DNS= in /etc/systemd/resolved.conf"
	var settings []string
	if p.DNS {
		settings = append(settings, "ipv4.dns ''")
	}
	if p.IgnoreAutoDNS {
		settings = append(settings, "ipv4.ignore-auto-dns no")
	}
	switch {
	case plan.Reason == dispatch.GlobalDNS && s.Conf.Global != "":
		return fail(code, seen, "remove the [global-dns] sections from /"+s.Conf.Global+keep+"; after the removal", "sudo nmcli general reload", again(s))
	case plan.Reason == dispatch.GlobalDNS:
		return fail(code, seen, "remove the global DNS configuration from NetworkManager"+keep)
	case l == nil || len(l.Nameservers) == 0:
		return fail(code, seen, "set DNS servers in the virtual network, or use DHCP")
	case len(settings) > 0:
		return fail(code, fmt.Sprintf("%s; because of the profile %q", seen, p.Name), "take the lease's "+list(l.Nameservers)+keep, modify(p.Name, strings.Join(settings, " "))...)
	}
	return fail(code, seen, "re-run the dispatcher hook once the device is ok", again(s))
}

// linkDNSNetworkd compares the nameservers of systemd-networkd with those of
// systemd-resolved, which reads them from systemd-networkd.
func linkDNSNetworkd(s *machine.Snapshot) Step {
	l := s.NetworkdLink(s.Interface)
	have := s.Resolved.V.State(s.Index(s.Interface)).Addrs()
	say, run := "make systemd-resolved read them again", "sudo systemctl restart "+machine.UnitResolved
	if s.Resolved.Err != nil {
		have, say, run = s.Conf.ResolvConf.Servers, "name the lease's there, unless others are intended", "cat /etc/resolv.conf"
	}
	if len(l.Nameservers) == 0 && len(have) == 0 {
		return fail("networkd-no-nameservers", "systemd-networkd has no nameservers for "+s.Interface+": it lost the lease's when it was restarted, or UseDNS=no is set",
			"ask the DHCP server again", reconfigure(s))
	}
	return compare("nameservers-not-networkds", fmt.Sprintf("systemd-networkd has %s for %s, in use are %s", list(l.Nameservers), s.Interface, list(have)), have, l.Nameservers, say, run)
}

// linkDNSFile is for a machine without systemd-resolved: NetworkManager writes
// /etc/resolv.conf.
func linkDNSFile(s *machine.Snapshot) Step {
	have, want := s.Conf.ResolvConf.Servers, s.NM.V.DNSConfig(s.Interface).Nameservers
	seen := fmt.Sprintf("/etc/resolv.conf has %s, NetworkManager wants %s", list(have), list(want))
	if len(have) == 0 && len(want) == 0 {
		return decided(s, dispatch.Plan{Reason: dispatch.NoDNSConfig}, seen)
	}
	return compare("resolv-conf-other", seen, have, want, "have NetworkManager write it", "sudo nmcli general reload dns-rc")
}

// compare compares the nameservers in use with the wanted ones.
func compare(code, seen string, have, want []netip.Addr, say, run string) Step {
	switch {
	case len(have) == 0:
		return fail(code, seen, say, run)
	case slices.ContainsFunc(want, func(a netip.Addr) bool { return !slices.Contains(have, a) }):
		return warn(code, seen, say, run)
	}
	return ok(list(have))
}

// source returns what configured the link's nameservers.
func source(v dispatch.LinkView) string {
	if v.Record.State == boot.Pushed && v.Have.Equal(v.Record.Nameservers) {
		return "nm-azure-dispatch"
	}
	return "NetworkManager"
}
