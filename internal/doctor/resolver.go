package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

func resolved(s *machine.Snapshot) Step {
	const name, leads = machine.UnitResolved, ", but /etc/resolv.conf leads to it"
	u, err := s.Units.V[name], s.Resolved.Err
	start := []string{"sudo systemctl enable --now " + name}
	then, whose := "", "" // of systemd-networkd systemd-resolved reads by itself
	install, write := "install it, or name the nameservers in /etc/resolv.conf", []string(nil)
	if !s.ByNetworkd() {
		then, whose, start = withEvent, ": the nameservers are NetworkManager's", append(start, again(s))
		install, write = "install it, or have NetworkManager write the file", []string{"sudo rm /etc/resolv.conf", "sudo nmcli general reload dns-rc"}
	}
	switch {
	case err == nil && s.Resolved.V.ResolvConf != "":
		return ok("systemd-resolved is running, resolv.conf mode " + s.Resolved.V.ResolvConf)
	case err == nil:
		return ok("systemd-resolved is running")
	case !errors.Is(err, resolv.ErrNotRunning):
		return fail("resolved-no-answer", strings.TrimPrefix(err.Error(), "resolv: "), "restart it", "sudo systemctl restart "+name)
	case !s.Conf.ResolvConf.Resolved():
		return skip("no-resolved", "systemd-resolved is not running, and /etc/resolv.conf does not lead to it"+whose)
	case u.Masked():
		return fail("resolved-masked", "systemd-resolved is masked"+leads, "unmask it"+then, append([]string{"sudo systemctl unmask " + name}, start...)...)
	case u.File == "" && s.Systemd && s.Units.Err == nil:
		return fail("resolved-missing", "systemd-resolved is not installed"+leads, install, write...)
	}
	return fail("resolved-stopped", "systemd-resolved is not running"+leads, "start it"+then, start...)
}

func resolvConf(s *machine.Snapshot) Step {
	v, running := s.Conf.ResolvConf, s.Resolved.Err == nil
	say, run := "have NetworkManager write it", "sudo nmcli general reload dns-rc"
	if running || s.ByNetworkd() {
		say, run = "link it to systemd-resolved", "sudo ln -sf ../"+machine.StubFile+" /etc/resolv.conf"
	}
	seen := fmt.Sprintf("/%s names %s", v.File, list(v.Servers))
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

func nmDNS(s *machine.Snapshot) Step {
	seen := fmt.Sprintf("mode %s, resolv.conf %s", s.NM.V.DNSMode, s.NM.V.RcManager)
	if s.Resolved.Err != nil && s.NM.V.RcManager == "unmanaged" && !s.Conf.ResolvConf.Resolved() {
		return warn("nobody-writes-resolv-conf", seen+": no program writes /etc/resolv.conf", "remove dns= and rc-manager= from NetworkManager.conf, then reload its configuration", "sudo nmcli general reload")
	}
	return ok(seen)
}
