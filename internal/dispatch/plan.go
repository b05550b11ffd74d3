package dispatch

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// step is what to do about a link's nameservers.
type step int

const (
	keep   step = iota // as it is, the record too
	push               // give resolved the wish
	undo               // take back what we pushed
	forget             // what we pushed is no longer there, or NetworkManager's now
	leave              // resolved lacks the nameservers, and reason says why that is no business of ours
)

// Reasons for leaving a link alone, as they stand in records and journal.
const (
	reasonNoWish   = "NetworkManager wants no nameservers for the link (ipv4.ignore-auto-dns, global-dns, or no DNS yet)"
	reasonOverride = "NetworkManager wants other nameservers than the lease has (ipv4.dns or the like)"
	reasonGlobal   = "systemd-resolved has global nameservers (DNS= in resolved.conf, or a resolv.conf of the administrator's)"
	reasonForeign  = "somebody else gave the link nameservers"
	reasonBusy     = "systemd-networkd owns the link"
	reasonAbsent   = "systemd-resolved is not available"
)

// linkView is what is known about a link, in plain values.
type linkView struct {
	primary bool         // it has the IPv4 default route
	lease   []netip.Addr // usable nameservers of the lease; nil without one
	wish    nm.DNSConfig // NetworkManager's, reduced to what is usable
	have    resolv.State // resolved's
	rec     boot.Link    // ours; zero if there is none
}

// decide is the whole policy: the wish is pushed as a whole, only if it is the
// lease's own, and only over nothing or over what we pushed ourselves.
func decide(v linkView) (step, string) {
	ours := v.rec.State == boot.Pushed && v.have.Equal(v.rec.Nameservers)
	unchanged := sameSet(v.wish.Nameservers, v.rec.Nameservers)
	_, otherDomains := domainsFor(v)
	reason := ""
	switch {
	case !v.primary:
	case v.wish.Empty():
		reason = reasonNoWish
	case len(v.wish.Other) > 0 || !sameSet(only4(v.wish.Nameservers), v.lease):
		reason = reasonOverride
	}
	switch {
	case ours && !unchanged && (!v.primary || reason != ""):
		return undo, reason // it is ours, and nobody's wish any more
	case v.rec.State == boot.Pushed && (!v.primary || reason != ""):
		return forget, ""
	case len(v.lease) == 0 || !v.primary:
		return keep, ""
	case reason != "":
		return leave, reason
	case v.have.Contains(v.wish.Nameservers) && (!ours || unchanged && !otherDomains):
		return keep, ""
	case len(v.have.Global) > 0:
		return leave, reasonGlobal
	case ours, len(v.have.Nameservers) == 0:
		return push, ""
	}
	return leave, reasonForeign
}

// domainsFor returns the domains to set with a push, and whether to set any:
// only where the link has none, or those that we set before.
func domainsFor(v linkView) ([]string, bool) {
	ours := v.rec.State == boot.Pushed && len(v.rec.Domains) > 0 && v.have.EqualDomains(v.rec.Domains)
	if !ours && (len(v.have.Domains) > 0 || len(v.wish.Domains) == 0) {
		return nil, false
	}
	return v.wish.Domains, !v.have.EqualDomains(v.wish.Domains)
}

// usable drops the addresses that nobody can be asked at, and repeats: resolved
// refuses a whole list for some of them, others would make a loop.
func usable(servers, own []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range servers {
		bad := a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
		if !bad && !slices.Contains(own, a) && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// usableWish reduces a wish to usable servers and plain search domains: a name
// that begins with a tilde only routes queries, which is not for us to set.
func usableWish(w nm.DNSConfig, own []netip.Addr) nm.DNSConfig {
	return nm.DNSConfig{
		Nameservers: usable(w.Nameservers, own),
		Domains:     slices.DeleteFunc(slices.Clone(w.Domains), func(d string) bool { return strings.HasPrefix(d, "~") }),
		Other:       w.Other,
	}
}

func only4(servers []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(servers), netip.Addr.Is6)
}

func sameSet(a, b []netip.Addr) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x netip.Addr) bool { return !slices.Contains(b, x) })
}
