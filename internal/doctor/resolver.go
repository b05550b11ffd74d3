package doctor

import (
	"errors"
	"fmt"
	"strings"

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
