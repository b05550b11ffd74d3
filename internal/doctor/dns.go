package doctor

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

const (
	rewriteResolvConf = "sudo nmcli general reload dns-rc"
	restartResolved   = "sudo systemctl restart " + machine.UnitResolved
)

func resolved(s *machine.Snapshot) Step {
	const name, leads = machine.UnitResolved, ", but /etc/resolv.conf leads to it"
	u, err := s.Units.V[name], s.Resolved.Err
	start := enable(s, name)
	then, whose := "", "" // systemd-resolved reads systemd-networkd's nameservers by itself
	install, write := "install it, or name the nameservers in /etc/resolv.conf", []string(nil)
	if !s.ByNetworkd() {
		then, whose, start = withEvent, ": the nameservers are NetworkManager's", append(start, again(s))
		install, write = "install it, or have NetworkManager write the file", []string{"sudo rm /etc/resolv.conf", rewriteResolvConf}
	}
	switch mode := s.Resolved.V.ResolvConf; {
	case err == nil && mode != "":
		return ok("systemd-resolved is running, resolv.conf mode " + mode)
	case err == nil:
		return ok("systemd-resolved is running")
	case !errors.Is(err, resolv.ErrNotRunning):
		return fail("resolved-no-answer", strings.TrimPrefix(err.Error(), "resolv: "), "restart it", restartResolved)
	case !s.Conf.ResolvConf.Resolved():
		return skip("no-resolved", "systemd-resolved is not running, and /etc/resolv.conf does not lead to it"+whose)
	case u.File == "" && s.Units.Err == nil:
		return fail("resolved-missing", "systemd-resolved is not installed"+leads, install, write...)
	}
	return fail("resolved-stopped", "systemd-resolved is not running"+leads, "start it"+then, start...)
}

func resolvConf(s *machine.Snapshot) Step {
	v, running := s.Conf.ResolvConf, s.Resolved.Err == nil
	say, run := writeResolvConf(s)
	if running || s.ByNetworkd() {
		say, run = "link it to systemd-resolved", "sudo ln -sf ../"+machine.StubFile+" /etc/resolv.conf"
	}
	seen := fmt.Sprintf("/%s names %s", v.File, list(v.Servers))
	switch {
	case v.Err != nil && !running && v.Resolved():
		return skip("not-checked", "not checked: resolved failed")
	case v.Err != nil && v.File != "etc/resolv.conf":
		return fail("resolv-conf-dangling", fmt.Sprintf("/etc/resolv.conf leads to /%s: %v", v.File, v.Err), say, run)
	case v.Err != nil:
		return fail("resolv-conf-unreadable", "/etc/resolv.conf: "+v.Err.Error(), say, run)
	case len(v.Servers) == 0:
		return fail("resolv-conf-empty", fmt.Sprintf("/%s names no nameserver", v.File), say, run)
	case v.Stub() && running && s.Resolved.V.Stub == "no":
		return fail("resolv-conf-stub-off", "/etc/resolv.conf names the stub of systemd-resolved, which is turned off",
			"remove DNSStubListener=no from /etc/systemd/resolved.conf, then restart it", restartResolved)
	case !v.Resolved() && running:
		return warn("resolv-conf-bypass", seen+", which bypasses systemd-resolved", say, run)
	}
	return ok(seen)
}

func nmDNS(s *machine.Snapshot) Step {
	seen := fmt.Sprintf("mode %s, resolv.conf %s", s.NM.V.DNSMode, s.NM.V.RcManager)
	if nobodyWrites(s) {
		say, run := writeResolvConf(s)
		return warn("nobody-writes-resolv-conf", seen+": no program writes /etc/resolv.conf", say, run)
	}
	return ok(seen)
}

// nobodyWrites reports whether no program writes resolv.conf.
func nobodyWrites(s *machine.Snapshot) bool {
	return s.Resolved.Err != nil && s.NM.V.RcManager == "unmanaged" && !s.Conf.ResolvConf.Resolved()
}

// writeResolvConf returns how to have NetworkManager write resolv.conf.
func writeResolvConf(s *machine.Snapshot) (say, run string) {
	if nobodyWrites(s) {
		return "remove dns= and rc-manager= from NetworkManager.conf, then reload its configuration", "sudo nmcli general reload"
	}
	return "have NetworkManager write it", rewriteResolvConf
}

// linkDNS compares the nameservers in use with the wanted ones.
func linkDNS(s *machine.Snapshot) Step {
	const rerun = "re-run the dispatcher hook"
	view := s.LinkView(s.Interface)
	have, want, file := view.Have.Addrs(), view.DNS.Nameservers, s.Conf.ResolvConf.Servers
	switch fileSeen := fmt.Sprintf("/etc/resolv.conf has %s, NetworkManager wants %s", list(file), list(want)); {
	case s.Resolved.Err != nil && s.Conf.ResolvConf.Resolved():
		return skip("not-checked", "not checked: resolved failed")
	case s.ByNetworkd():
		return linkDNSNetworkd(s, have)
	case s.Resolved.Err != nil && len(file) == 0 && len(want) == 0: // otherwise NetworkManager writes the file
		return decided(s, dispatch.NoDNSConfig, fileSeen)
	case s.Resolved.Err != nil:
		say, run := writeResolvConf(s)
		return compare("resolv-conf-other", fileSeen, file, want, say, run)
	}
	plan := dispatch.Decide(view)
	code := plan.Reason.Code
	seen := fmt.Sprintf("systemd-resolved has %s, NetworkManager wants %s", list(have), list(want))
	why := seen + ": " + plan.Reason.Text
	switch {
	case plan.Action == dispatch.ActPush && view.Primary:
		return fail(code, seen+": the hook has not configured them", rerun, again(s))
	case plan.Action == dispatch.ActUndo:
		return warn(code, seen+": those that nm-azure-dispatch configured are no longer wanted", rerun, again(s))
	case plan.Reason == dispatch.UpToDate || len(want) > 0 && view.Have.Contains(want):
		source := "NetworkManager"
		if view.Record.State == boot.Pushed && view.Have.Equal(view.Record.Nameservers) {
			source = "nm-azure-dispatch"
		}
		return ok(fmt.Sprintf("%s, from %s", list(have), source))
	case plan.Reason == dispatch.OtherServers:
		return fail(code, why, "remove them, unless they are intended", "sudo resolvectl revert "+shell(s.Interface), again(s))
	case plan.Reason == dispatch.GlobalServers:
		return warn(code, why, "no action is required if they are intended", "resolvectl status")
	case len(have) > 0:
		return ok(fmt.Sprintf("%s; %s", list(have), plan.Reason.Text))
	case plan.Reason == dispatch.NotDefaultRoute:
		return warn(code, why, "no action is required if another interface has them", "resolvectl dns")
	}
	return decided(s, plan.Reason, why)
}

// decided returns the step of a link without nameservers that the hook does not
// change because of a setting. The remedy changes the setting. Only servers of the
// lease are recommended.
func decided(s *machine.Snapshot, reason dispatch.Reason, seen string) Step {
	d, _ := s.Device()
	p, l := d.Profile, s.Lease()
	const keep = "; to keep it, name the servers in DNS= in /etc/systemd/resolved.conf"
	settings := ""
	if p.DNS {
		settings += " ipv4.dns ''"
	}
	if p.IgnoreAutoDNS {
		settings += " ipv4.ignore-auto-dns no"
	}
	say, run := "re-run the dispatcher hook once the device is ok", []string{again(s)}
	switch {
	case reason == dispatch.GlobalDNS && s.Conf.Global != "":
		say = "remove the [global-dns] sections from /" + s.Conf.Global + keep + "; after the removal"
		run = []string{"sudo nmcli general reload", again(s)}
	case reason == dispatch.GlobalDNS:
		say, run = "remove the global DNS configuration from NetworkManager"+keep, nil
	case l == nil || len(l.Nameservers) == 0:
		say, run = "set DNS servers in the virtual network, or use DHCP", nil
	case settings != "":
		seen += fmt.Sprintf("; because of the profile %q", p.Name)
		say, run = "take the lease's "+list(l.Nameservers)+keep, modify(p.Name, settings[1:])
	}
	return fail(reason.Code, seen, say, run...)
}

// linkDNSNetworkd compares the nameservers of systemd-networkd with those of
// systemd-resolved, which reads them from systemd-networkd.
func linkDNSNetworkd(s *machine.Snapshot, have []netip.Addr) Step {
	want := s.NetworkdLink(s.Interface).Nameservers
	say, run := "make systemd-resolved read them again", restartResolved
	if s.Resolved.Err != nil {
		have, say, run = s.Conf.ResolvConf.Servers, "name the lease's there, unless others are intended", "cat /etc/resolv.conf"
	}
	if len(want) == 0 && len(have) == 0 {
		return fail("networkd-no-nameservers", "systemd-networkd has no nameservers for "+s.Interface+
			": it lost the lease's when it was restarted, or UseDNS=no is set", "ask the DHCP server again", reconfigure(s))
	}
	seen := fmt.Sprintf("systemd-networkd has %s for %s, in use are %s", list(want), s.Interface, list(have))
	return compare("nameservers-not-networkds", seen, have, want, say, run)
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
