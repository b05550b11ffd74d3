package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

func resolved(ctx context.Context, env *Env) result {
	index, _ := link.Index(env.Root, env.Interface) // 0, which no link has, if it is gone
	r, err := env.Resolved(ctx, index)
	used := readResolvConf(env.Root).ours()
	u := env.unit(resolvedUnit)
	switch {
	case err == nil:
		env.resolved = &r
		mode := ""
		if r.ResolvConf != "" {
			mode = ", resolv.conf mode " + r.ResolvConf
		}
		return ok("systemd-resolved is running" + mode)
	case !errors.Is(err, live.ErrNotRunning):
		return fail(why(ctx, err), "restart it", "sudo systemctl restart "+resolvedUnit)
	case !used:
		return skip("systemd-resolved is not running, and /etc/resolv.conf does not lead to it: the nameservers are NetworkManager's")
	case masked(u.File):
		return fail("systemd-resolved is masked, but /etc/resolv.conf leads to it", "unmask it, then repeat the event", "sudo systemctl unmask "+resolvedUnit, "sudo systemctl enable --now "+resolvedUnit, reapply(env))
	case u.File == "" && env.systemd():
		return fail("systemd-resolved is not installed, but /etc/resolv.conf leads to it", "install it, or have NetworkManager write the file", "sudo rm /etc/resolv.conf", "sudo nmcli general reload dns-rc")
	}
	return fail("systemd-resolved is not running, but /etc/resolv.conf leads to it", "start it, then repeat the event", "sudo systemctl enable --now "+resolvedUnit, reapply(env))
}

func nmDNS(_ context.Context, env *Env) result {
	seen := fmt.Sprintf("mode %s, resolv.conf %s", env.nm.DNSMode, env.nm.RcManager)
	if env.resolved == nil && env.nm.RcManager == "unmanaged" && !readResolvConf(env.Root).ours() {
		return warn(seen+": nobody writes /etc/resolv.conf", "remove dns= and rc-manager= from NetworkManager.conf, then have it read that", "sudo nmcli general reload")
	}
	return ok(seen)
}

// linkDNS compares the nameservers in use with what NetworkManager wants, and
// that with the lease.
func linkDNS(_ context.Context, env *Env) result {
	iface, profile := env.Interface, shell(env.device.Profile)
	wish := env.nm.DNSConfig(iface)
	file := readResolvConf(env.Root)
	if env.resolved == nil && file.ours() {
		return skip("not looked at: resolved failed")
	}
	have, where := file.servers, "/etc/resolv.conf"
	var state resolv.State
	if env.resolved != nil {
		state, where = env.resolved.State, "systemd-resolved"
		have = addrs(state)
	}
	note := ""
	if l := env.device.Lease; l != nil && !same4(wish.Nameservers, l.Nameservers) {
		note = fmt.Sprintf("; the lease has %s, NetworkManager was told otherwise", join(l.Nameservers))
	}
	switch {
	case wish.Empty() && len(have) == 0:
		return fail(fmt.Sprintf("%s has no nameservers, and NetworkManager wants none for %s%s", where, iface, note),
			"take the lease's, or set some", "sudo nmcli connection modify "+profile+" ipv4.ignore-auto-dns no ipv4.dns "+azureDNS, "sudo nmcli connection up "+profile)
	case wish.Empty():
		return ok(fmt.Sprintf("%s has %s, and NetworkManager wants none for %s", where, join(have), iface))
	case len(have) == 0 && !slices.Contains(link.DefaultRoutes(env.Root), iface):
		return warn(fmt.Sprintf("%s has no nameservers for %s, which has no default route", where, iface), "nothing is to be done if another interface has them", "resolvectl dns")
	case len(have) == 0 && env.resolved == nil:
		return fail(fmt.Sprintf("%s has no nameservers, NetworkManager wants %s%s", where, join(wish.Nameservers), note), "have NetworkManager write it", "sudo nmcli general reload dns-rc")
	case len(have) == 0:
		return fail(fmt.Sprintf("%s has no nameservers, NetworkManager wants %s%s", where, join(wish.Nameservers), note), "have the hook see to it", reapply(env))
	case env.resolved == nil:
		if !has(have, wish.Nameservers) {
			return warn(fmt.Sprintf("/etc/resolv.conf has %s, NetworkManager wants %s%s", join(have), join(wish.Nameservers), note), "have NetworkManager write it", "sudo nmcli general reload dns-rc")
		}
	case state.Contains(wish.Nameservers):
		return ok(fmt.Sprintf("%s, from %s%s", join(have), from(env, state), note))
	case len(state.Nameservers) == 0:
		return warn(fmt.Sprintf("only the global nameservers %s, NetworkManager wants %s%s", join(have), join(wish.Nameservers), note),
			"they are DNS= in resolved.conf, or a resolv.conf of the administrator's", "resolvectl status")
	default:
		return fail(fmt.Sprintf("somebody gave %s %s, NetworkManager wants %s%s", iface, join(have), join(wish.Nameservers), note),
			"take them back, unless they are meant", "sudo resolvectl revert "+shell(iface), reapply(env))
	}
	return ok(join(have) + note)
}

// from tells who gave the link what NetworkManager wants it to have.
func from(env *Env, state resolv.State) string {
	index, _ := link.Index(env.Root, env.Interface)
	rec, err := env.Records.Link(index, env.BootID, env.Interface)
	if err == nil && rec.State == boot.Pushed && state.Equal(rec.Nameservers) {
		return "nm-azure-dispatch"
	}
	return "NetworkManager"
}

// addrs returns the servers in use for a link: its own and the global ones.
func addrs(s resolv.State) []netip.Addr {
	var out []netip.Addr
	for _, srv := range slices.Concat(s.Nameservers, s.Global) {
		if !slices.Contains(out, srv.Addr) {
			out = append(out, srv.Addr)
		}
	}
	return out
}

// has reports whether every address wanted is there.
func has(have, want []netip.Addr) bool {
	return !slices.ContainsFunc(want, func(a netip.Addr) bool { return !slices.Contains(have, a) })
}

// same4 reports whether the IPv4 part of a wish is what the lease names, less
// what NetworkManager itself drops.
func same4(wish, lease []netip.Addr) bool {
	wish = slices.DeleteFunc(slices.Clone(wish), netip.Addr.Is6)
	lease = slices.DeleteFunc(slices.Clone(lease), func(a netip.Addr) bool { return a.IsUnspecified() || a.IsLoopback() })
	return has(wish, lease) && has(lease, wish)
}
