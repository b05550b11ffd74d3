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

func resolved(s *machine.Snapshot) result {
	const name = machine.UnitResolved
	u, used := s.Units.Of(name), s.Conf.ResolvConf.Resolved()
	then, next := withEvent, []string{again(s)}
	if s.ByNetworkd() { // which systemd-resolved reads by itself
		then, next = "", nil
	}
	switch {
	case s.Resolved.Err == nil && s.Resolved.V.ResolvConf != "":
		return ok("systemd-resolved is running, resolv.conf mode " + s.Resolved.V.ResolvConf)
	case s.Resolved.Err == nil:
		return ok("systemd-resolved is running")
	case !errors.Is(s.Resolved.Err, resolv.ErrNotRunning):
		return fail("resolved-no-answer", strings.TrimPrefix(s.Resolved.Err.Error(), "resolv: "), "restart it", "sudo systemctl restart "+name)
	case !used && s.ByNetworkd():
		return skip("no-resolved", "systemd-resolved is not running, and /etc/resolv.conf does not lead to it")
	case !used:
		return skip("no-resolved", "systemd-resolved is not running, and /etc/resolv.conf does not lead to it: the nameservers are NetworkManager's")
	case u.Masked():
		return fail("resolved-masked", "systemd-resolved is masked, but /etc/resolv.conf leads to it", "unmask it"+then,
			append([]string{"sudo systemctl unmask " + name, "sudo systemctl enable --now " + name}, next...)...)
	case u.File == "" && s.Units.Systemd && s.ByNetworkd():
		return fail("resolved-missing", "systemd-resolved is not installed, but /etc/resolv.conf leads to it", "install it, or name the nameservers in /etc/resolv.conf")
	case u.File == "" && s.Units.Systemd:
		return fail("resolved-missing", "systemd-resolved is not installed, but /etc/resolv.conf leads to it", "install it, or have NetworkManager write the file", "sudo rm /etc/resolv.conf", "sudo nmcli general reload dns-rc")
	}
	return fail("resolved-stopped", "systemd-resolved is not running, but /etc/resolv.conf leads to it", "start it"+then, append([]string{"sudo systemctl enable --now " + name}, next...)...)
}

func resolvConf(s *machine.Snapshot) result {
	v, running := s.Conf.ResolvConf, s.Resolved.Err == nil
	say, run := "have NetworkManager write it", "sudo nmcli general reload dns-rc"
	if running || s.ByNetworkd() {
		say, run = "link it to systemd-resolved", "sudo ln -sf ../"+machine.StubFile+" /etc/resolv.conf"
	}
	seen := fmt.Sprintf("/%s names %s", v.File, join(v.Servers))
	switch {
	case v.Err != nil && !running && v.Resolved():
		return skip("not-checked", "not checked: resolved failed")
	case v.Err != nil && v.File != "" && v.File != "etc/resolv.conf":
		return fail("resolv-conf-dangling", fmt.Sprintf("/etc/resolv.conf leads to /%s: %v", v.File, v.Err), say, run)
	case v.Err != nil:
		return fail("resolv-conf-unreadable", "/etc/resolv.conf: "+v.Err.Error(), say, run)
	case len(v.Servers) == 0:
		return fail("resolv-conf-empty", fmt.Sprintf("/%s names no nameserver", v.File), say, run)
	case v.Stub() && running && s.Resolved.V.Stub == "no":
		return fail("resolv-conf-stub-off", "/etc/resolv.conf names the stub of systemd-resolved, which is turned off", "remove DNSStubListener=no from /etc/systemd/resolved.conf, then restart it", "sudo systemctl restart "+machine.UnitResolved)
	case !v.Resolved() && running:
		return warn("resolv-conf-bypass", seen+", which bypasses systemd-resolved", say, run)
	}
	return ok(seen)
}

func nmDNS(s *machine.Snapshot) result {
	if s.ByNetworkd() {
		return skip("networkd", "the nameservers are systemd-networkd's")
	}
	seen := fmt.Sprintf("mode %s, resolv.conf %s", s.NM.V.DNSMode, s.NM.V.RcManager)
	if s.Resolved.Err != nil && s.NM.V.RcManager == "unmanaged" && !s.Conf.ResolvConf.Resolved() {
		return warn("nobody-writes-resolv-conf", seen+": nobody writes /etc/resolv.conf", "remove dns= and rc-manager= from NetworkManager.conf, then have it read that", "sudo nmcli general reload")
	}
	return ok(seen)
}

// linkDNS compares the nameservers in use with what they should be.
func linkDNS(s *machine.Snapshot) result {
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
	have := servers(view.Have)
	seen := fmt.Sprintf("systemd-resolved has %s, NetworkManager wants %s", some(have), some(want))
	switch {
	case plan.Action == dispatch.ActPush && view.Primary:
		return fail(string(plan.Code), seen+": the hook has not configured them", "re-run the dispatcher hook", again(s))
	case plan.Action == dispatch.ActUndo:
		return warn(string(plan.Code), seen+": those that nm-azure-dispatch configured are no longer wanted", "re-run the dispatcher hook", again(s))
	case plan.Code == dispatch.UpToDate || len(want) > 0 && view.Have.Contains(want):
		return ok(fmt.Sprintf("%s, from %s", join(have), source(view)))
	case plan.Code == dispatch.OtherServers:
		return fail(string(plan.Code), seen+": "+plan.Reason, "remove them, unless they are intended", "sudo resolvectl revert "+shell(s.Interface), again(s))
	case plan.Code == dispatch.GlobalServers:
		return warn(string(plan.Code), seen+": "+plan.Reason, "nothing is to be done if they are intended", "resolvectl status")
	case len(have) > 0:
		return ok(fmt.Sprintf("%s; %s", join(have), plan.Reason))
	case plan.Code == dispatch.NotDefaultRoute:
		return warn(string(plan.Code), seen+": "+plan.Reason, "nothing is to be done if another interface has them", "resolvectl dns")
	}
	return decided(s, plan, seen+": "+plan.Reason)
}

// decided is for a link that has no nameservers, and that the hook leaves alone
// since a setting says so: the setting is what can be changed. No server is ever
// advised that the lease does not have.
func decided(s *machine.Snapshot, plan dispatch.Plan, seen string) result {
	p := s.Profile()
	const keep = "; to keep it, name the servers in DNS= in /etc/systemd/resolved.conf"
	var settings []string
	if p.DNS {
		settings = append(settings, "ipv4.dns ''")
	}
	if p.IgnoreAutoDNS {
		settings = append(settings, "ipv4.ignore-auto-dns no")
	}
	switch {
	case plan.Code == dispatch.GlobalDNS && s.Conf.Global != "":
		return fail(string(plan.Code), seen, "remove the [global-dns] sections from /"+s.Conf.Global+keep+"; after the removal", "sudo nmcli general reload", again(s))
	case plan.Code == dispatch.GlobalDNS:
		return fail(string(plan.Code), seen, "remove the global DNS configuration from NetworkManager"+keep)
	case len(settings) > 0 && s.Lease() != nil:
		return fail(string(plan.Code), fmt.Sprintf("%s; the profile %q says so", seen, p.Name), "take the lease's "+some(s.Lease().Nameservers)+keep, modify(p.Name, strings.Join(settings, " "))...)
	case s.Lease() == nil || len(s.Lease().Nameservers) == 0:
		return fail(string(plan.Code), seen, "set DNS servers in the virtual network, or use DHCP")
	}
	return fail(string(plan.Code), seen, "re-run the dispatcher hook once the device is ok", again(s))
}

// linkDNSNetworkd compares what systemd-networkd has with what systemd-resolved,
// which reads it by itself, has.
func linkDNSNetworkd(s *machine.Snapshot) result {
	l, _ := s.NetworkdLink()
	have := servers(s.Resolved.V.State(s.Index(s.Interface)))
	say, run := "have systemd-resolved read them again", "sudo systemctl restart "+machine.UnitResolved
	if s.Resolved.Err != nil {
		have, say, run = s.Conf.ResolvConf.Servers, "name the lease's there, unless others are intended", "cat /etc/resolv.conf"
	}
	if len(l.Nameservers) == 0 && len(have) == 0 {
		return fail("networkd-no-nameservers", "systemd-networkd has no nameservers for "+s.Interface+": it lost the lease's when it was restarted, or UseDNS=no says so",
			"ask the DHCP server again", "sudo networkctl reconfigure "+shell(s.Interface))
	}
	return compare("nameservers-not-networkds", fmt.Sprintf("systemd-networkd has %s for %s, in use are %s", some(l.Nameservers), s.Interface, some(have)), have, l.Nameservers, say, run)
}

// linkDNSFile is for a machine without systemd-resolved: NetworkManager writes
// /etc/resolv.conf.
func linkDNSFile(s *machine.Snapshot) result {
	have, want := s.Conf.ResolvConf.Servers, s.NM.V.DNSConfig(s.Interface).Nameservers
	seen := fmt.Sprintf("/etc/resolv.conf has %s, NetworkManager wants %s", some(have), some(want))
	if len(have) == 0 && len(want) == 0 {
		return decided(s, dispatch.Plan{Code: dispatch.NoDNSConfig}, seen)
	}
	return compare("resolv-conf-other", seen, have, want, "have NetworkManager write it", "sudo nmcli general reload dns-rc")
}

// compare judges the nameservers in use by those that are wanted.
func compare(code, seen string, have, want []netip.Addr, say, run string) result {
	switch {
	case len(have) == 0:
		return fail(code, seen, say, run)
	case slices.ContainsFunc(want, func(a netip.Addr) bool { return !slices.Contains(have, a) }):
		return warn(code, seen, say, run)
	}
	return ok(join(have))
}

// source tells who configured the link's nameservers.
func source(v dispatch.LinkView) string {
	if v.Record.State == boot.Pushed && v.Have.Equal(v.Record.Nameservers) {
		return "nm-azure-dispatch"
	}
	return "NetworkManager"
}

func servers(s resolv.State) []netip.Addr {
	var out []netip.Addr
	for _, srv := range slices.Concat(s.Nameservers, s.Global) {
		if !slices.Contains(out, srv.Addr) {
			out = append(out, srv.Addr)
		}
	}
	return out
}

// some is a list for people.
func some(list []netip.Addr) string {
	if len(list) == 0 {
		return "none"
	}
	return join(list)
}
