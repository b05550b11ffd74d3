package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// LinkView is what is known about a link's DNS configuration, in plain values.
type LinkView struct {
	Primary   bool         // the link has an IPv4 default route
	Activated bool         // NetworkManager has activated the device (state 100)
	External  bool         // NetworkManager found the device configured
	Down      bool         // the link goes down
	Lease     []netip.Addr // nameservers of the DHCPv4 lease, as they came; none without a lease
	DNS       nm.DNSConfig // what NetworkManager wants the link to have
	DNSErr    error        // why DNS is not known
	Have      resolv.State // what systemd-resolved has
	HaveErr   error        // why Have is not known, or why systemd-resolved refused a change
	Record    boot.Link    // of this boot; zero without one
	Own       []netip.Addr // the machine's own addresses
}

// Add adds what NetworkManager has for the interface; err is why that is not known.
// reapplied: NetworkManager has just applied the profile again. Then, and for a link
// with a push, an entry that is missing was lost, see [nm.Device.IP4DNS].
func (v *LinkView) Add(s nm.Snapshot, err error, iface string, reapplied bool) {
	d, _ := s.Device(iface)
	v.Activated, v.External = d.State == nm.StateActivated, v.External || d.External
	if d.Lease != nil {
		v.Lease = d.Lease.Nameservers
	}
	v.DNS, v.DNSErr = s.DNSConfig(iface), err
	none := v.DNS.Empty() && !v.DNS.Global && !v.DNS.Excluded
	if none && v.Activated && (v.Record.State == boot.Pushed || reapplied) {
		v.DNS = d.IP4DNS
	}
}

// Action is what to do about a link's nameservers.
type Action string

// The actions.
const (
	ActNone   Action = "none"   // nothing, and the record stays
	ActPush   Action = "push"   // configure Plan.Nameservers in systemd-resolved
	ActUndo   Action = "undo"   // remove what was pushed
	ActForget Action = "forget" // change the record only: there is nothing from us and nothing to report
	ActLeave  Action = "leave"  // do not change the link although it lacks the lease's nameservers, and report why
)

// Plan is the decision of the policy about a link.
type Plan struct {
	Action      Action
	Nameservers []netip.Addr // of a push
	Domains     []string     // of a push: the search domains that are ours after it
	SetDomains  bool         // the push or undo changes the search domains
	Reason      Reason
}

// Decide is the policy. NetworkManager's configuration of the link is pushed as
// a whole, only if its IPv4 servers are the lease's, and only over nothing or
// over what was pushed before. What was pushed is ours for as long as
// systemd-resolved has exactly that; it is removed when NetworkManager no
// longer wants it and nothing can be pushed in its place.
func Decide(v LinkView) Plan {
	d := decision{LinkView: v, want: v.DNS, lease: usable(v.Lease, v.Own)}
	d.want.Nameservers = usable(v.DNS.Nameservers, v.Own)
	d.want.Domains = slices.DeleteFunc(slices.Clone(v.DNS.Domains), func(name string) bool { return strings.HasPrefix(name, "~") })
	if v.DNSErr != nil {
		d.want = nm.DNSConfig{}
	}
	d.ours = v.Record.State == boot.Pushed &&
		(v.Have.Equal(v.Record.Nameservers) || len(v.Have.Nameservers) == 0 && d.ourDomains())
	p := d.plan()
	switch p.Action {
	case ActPush:
		p.Nameservers = d.want.Nameservers
		p.Domains, p.SetDomains = d.domains()
	case ActUndo:
		p.SetDomains = d.ourDomains()
	case ActForget:
		if v.Record.State == "" || v.Record.State == boot.None {
			p.Action = ActNone // there is no record to change
		}
	}
	return p
}

// Trace returns the facts of the view and what Decide makes of them, in one line.
func (v LinkView) Trace() string {
	flag := func(name string, is bool) string {
		if is {
			return name + " "
		}
		return ""
	}
	flags := flag("down", v.Down) + flag("primary", v.Primary) + flag("activated", v.Activated) + flag("external", v.External) +
		flag("global-dns", v.DNS.Global) + flag("global-servers", len(v.Have.Global) > 0)
	wanted := list(v.DNS.Nameservers, slices.Concat(v.DNS.Other, v.DNS.Domains)...)
	if v.DNSErr != nil {
		wanted = "unknown"
	}
	var domains []string
	for _, d := range v.Have.Domains {
		domains = append(domains, d.Name)
	}
	have := list(resolv.State{Nameservers: v.Have.Nameservers}.Addrs(), domains...)
	if v.HaveErr != nil {
		have = "unknown"
	}
	p := Decide(v)
	return fmt.Sprintf("%slease=%s wanted=%s have=%s record=%s,%s: %s %s (%s)", flags, list(v.Lease), wanted, have,
		cmp.Or(v.Record.State, boot.None), list(v.Record.Nameservers, v.Record.Domains...),
		p.Action, list(p.Nameservers, p.Domains...), p.Reason.Code)
}

// list joins servers and names by commas; "-" if there are none.
func list(servers []netip.Addr, names ...string) string {
	return cmp.Or(strings.Join(append(strings.Fields(join(servers)), names...), ","), "-")
}

// decision is a view reduced to what is usable.
type decision struct {
	LinkView
	want  nm.DNSConfig
	lease []netip.Addr
	ours  bool // systemd-resolved has what the record says that we pushed
}

// plan decides. A failed query changes neither the link nor the record of a push, and
// neither does a device in transition. On down NetworkManager may be waiting for us,
// and not answer: then the default route shows whether the device is active.
func (d *decision) plan() Plan {
	why := d.obstacle()
	ok := why == Reason{}
	ignored := len(d.lease) == 0 || !d.Primary || d.Down || !d.Activated || d.External
	_, otherDomains := d.domains()
	switch {
	case errors.Is(d.HaveErr, resolv.ErrNotRunning) && d.Record.State == boot.Pushed:
		return Plan{Action: ActNone, Reason: ResolvedUnavailable}
	case errors.Is(d.HaveErr, resolv.ErrNotRunning):
		return Plan{Action: ActLeave, Reason: ResolvedUnavailable}
	case errors.Is(d.HaveErr, resolv.ErrLinkBusy):
		return Plan{Action: ActLeave, Reason: ManagedByNetworkd}
	case d.HaveErr != nil:
		return Plan{Action: ActNone, Reason: ResolvedFailed}
	case d.DNSErr != nil && !(d.Down && !d.Primary):
		return Plan{Action: ActNone, Reason: NetworkManagerFailed}
	case d.Down && !d.want.Empty():
		return Plan{Action: ActNone, Reason: ActiveAgain}
	case !d.Activated && !d.want.Empty():
		return Plan{Action: ActNone, Reason: NotActivated}
	case d.ours && d.stillWanted() && (!ok || !otherDomains):
		return Plan{Action: ActNone, Reason: cmp.Or(why, UpToDate)}
	case d.ours && (!ok || len(d.Have.Global) > 0):
		return Plan{Action: ActUndo, Reason: cmp.Or(why, GlobalServers)}
	case !ok && ignored:
		return Plan{Action: ActForget, Reason: why}
	case !ok:
		return Plan{Action: ActLeave, Reason: why}
	case !d.ours && d.Have.Contains(d.want.Nameservers):
		return Plan{Action: ActForget, Reason: UpToDate}
	case len(d.Have.Global) > 0:
		return Plan{Action: ActLeave, Reason: GlobalServers}
	case d.ours:
		return Plan{Action: ActPush, Reason: DNSChanged}
	case len(d.Have.Nameservers) == 0:
		return Plan{Action: ActPush, Reason: NameserversMissing}
	}
	return Plan{Action: ActLeave, Reason: OtherServers}
}

// obstacle returns why NetworkManager's configuration is not pushed; zero if
// nothing keeps it from being pushed.
func (d *decision) obstacle() Reason {
	switch {
	case d.Down:
		return LinkDown
	case !d.Activated:
		return NotActivated
	case d.External:
		return External
	case d.want.Global:
		return GlobalDNS
	case d.want.Empty() && len(d.lease) == 0:
		return NoLeaseServers
	case d.want.Empty():
		return NoDNSConfig
	case len(d.want.Other) > 0 || !sameSet(slices.DeleteFunc(slices.Clone(d.want.Nameservers), netip.Addr.Is6), d.lease):
		return DNSDiffers
	case !d.Primary:
		return NotDefaultRoute
	case len(d.lease) == 0:
		return NoLeaseServers
	}
	return Reason{}
}

// stillWanted reports whether NetworkManager wants what was pushed.
func (d *decision) stillWanted() bool {
	return sameSet(d.want.Nameservers, d.Record.Nameservers) && len(d.Have.Nameservers) > 0 &&
		(!d.ourDomains() || !slices.ContainsFunc(d.Record.Domains, func(name string) bool {
			return !slices.ContainsFunc(d.want.Domains, func(w string) bool { return strings.EqualFold(w, name) })
		}))
}

// ourDomains reports whether the link has exactly the domains that were pushed.
func (d *decision) ourDomains() bool {
	return d.Record.State == boot.Pushed && len(d.Record.Domains) > 0 && d.Have.EqualDomains(d.Record.Domains)
}

// domains returns the domains that are ours after a push, and whether to set
// them: only where the link has none, or those that were pushed before.
func (d *decision) domains() (ours []string, set bool) {
	if !d.ourDomains() && (len(d.Have.Domains) > 0 || len(d.want.Domains) == 0) {
		return nil, false
	}
	return d.want.Domains, !d.Have.EqualDomains(d.want.Domains)
}

// usable drops duplicates and addresses that cannot be a nameserver's: resolved
// refuses lists with some of them, others would cause a loop.
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

func sameSet(a, b []netip.Addr) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x netip.Addr) bool { return !slices.Contains(b, x) })
}

// Reason says why a Plan is as it is.
type Reason struct {
	Code string // stable
	Text string // as records and the journal have it
}

// The reasons.
var (
	UpToDate             = Reason{"up-to-date", "the link's nameservers are up to date"}
	NameserversMissing   = Reason{"nameservers-missing", "systemd-resolved has no nameservers for the link"}
	DNSChanged           = Reason{"dns-config-changed", "NetworkManager's DNS configuration of the link has changed"}
	LinkDown             = Reason{"link-down", "the link went down"}
	ActiveAgain          = Reason{"active-again", "the device is active again"}
	NotActivated         = Reason{"not-activated", "the device is not activated"}
	External             = Reason{"external", "NetworkManager did not configure the device"}
	NotDefaultRoute      = Reason{"not-default-route", "the link has no IPv4 default route"}
	NoLeaseServers       = Reason{"no-nameservers-in-lease", "the device has no DHCPv4 lease with nameservers"}
	NoDNSConfig          = Reason{"no-dns-config", "NetworkManager wants no nameservers for the link (ipv4.ignore-auto-dns, or no DNS configuration yet)"}
	GlobalDNS            = Reason{"global-dns", "NetworkManager has a global DNS configuration ([global-dns] in NetworkManager.conf)"}
	DNSDiffers           = Reason{"dns-differs-from-lease", "NetworkManager wants other nameservers than the lease has (ipv4.dns or the like)"}
	GlobalServers        = Reason{"global-servers", "systemd-resolved has global nameservers (DNS= in resolved.conf, or the administrator's resolv.conf)"}
	OtherServers         = Reason{"other-servers", "something else configured other nameservers for the link"}
	ManagedByNetworkd    = Reason{"link-managed-by-networkd", "systemd-networkd manages the link"}
	ResolvedUnavailable  = Reason{"resolved-unavailable", "systemd-resolved is not available"}
	ResolvedFailed       = Reason{"resolved-failed", "systemd-resolved did not answer, or refused the change"}
	NetworkManagerFailed = Reason{"networkmanager-failed", "NetworkManager did not answer, or with an error"}
)
