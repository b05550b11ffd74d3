// Package status summarizes the check-in of this boot and the nameservers of links,
// from the records and the current state of the network managers and
// systemd-resolved.
package status

import (
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/machine"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// version counts changes of the JSON output that break its readers.
const version = 1

// Status is the JSON output, which docs/schema/status.json describes.
type Status struct {
	Version  int           `json:"version"`
	Azure    bool          `json:"azure"`
	Platform string        `json:"platform"` // what identified it, or what was missing
	BootID   string        `json:"boot_id"`  // "" if it cannot be read
	CheckIn  *boot.CheckIn `json:"check_in"` // nil without a record of this boot
	Links    []Link        `json:"links"`
	Running  bool          `json:"check_in_running"`
	NotRead  []NotRead     `json:"not_read"`

	recordErr, unitsErr error
}

// Link is the status of a link's nameservers. A source that is nil has not answered, or
// does not know the link.
type Link struct {
	Interface string         `json:"interface"`
	Index     int            `json:"ifindex"`           // 0 if it is not known
	Lease     []netip.Addr   `json:"lease_nameservers"` // nil without a lease
	DNS       *DNS           `json:"networkmanager"`    // what NetworkManager wants
	Networkd  []netip.Addr   `json:"networkd_nameservers"`
	Resolved  *Resolved      `json:"resolved"`
	From      string         `json:"from"`   // what configured the nameservers in systemd-resolved
	State     boot.LinkState `json:"state"`  // the record's; "" without one
	Reason    string         `json:"reason"` // the record's
	// Decision is what the policy would do now, and the facts it is made on, in one
	// line for people.
	Decision string `json:"decision"`
}

// DNS is the DNS configuration that NetworkManager wants for a link.
type DNS struct {
	Resolved
	Other []string `json:"other"` // servers that are no plain addresses
}

// Resolved is what systemd-resolved has for a link.
type Resolved struct {
	Nameservers []netip.Addr `json:"nameservers"`
	Domains     []string     `json:"domains"`
}

// NotRead is what could not be read, and why.
type NotRead struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// The values of Link.From.
const (
	fromUs             = "nm-azure-dispatch"
	fromNetworkManager = "networkmanager"
	fromNetworkd       = "systemd-networkd"
	fromOther          = "other"
	fromNobody         = "nobody"
	fromUnknown        = "unknown"
)

// Of returns the status of a machine. If it is not an Azure VM, only the platform is
// set.
func Of(m *machine.Snapshot) Status {
	s := Status{Version: version, Azure: m.Platform.Azure, Platform: m.Platform.Why, Links: []Link{}, NotRead: []NotRead{}}
	s.notRead("platform", m.Platform.Err)
	if !s.Azure {
		return s
	}
	s.BootID, s.Running = m.Records.BootID, m.Units.V[machine.UnitCheckIn].Running()
	if !m.Ready() { // otherwise the unit has done its work
		s.unitsErr = m.Units.Err
		s.notRead("systemd", m.Units.Err)
	}
	s.notRead("boot ID", m.Records.BootErr)
	if rec := m.Records.CheckIn; rec.Err == nil {
		s.CheckIn = &rec.V
	} else if !errors.Is(rec.Err, fs.ErrNotExist) {
		s.recordErr = rec.Err
		s.notRead("record of the check-in", rec.Err)
	}
	if m.ByNetworkd() {
		s.notRead("systemd-networkd", m.Networkd.Err)
	} else {
		s.notRead("NetworkManager", m.NM.Err)
	}
	names := slices.Clone(m.Kernel.DefaultRoutes) // and those with a lease or a record
	for _, l := range m.Kernel.Links {
		_, recorded := m.Records.Links[l.Name]
		if (recorded || m.LeaseOf(l.Name) != nil) && !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	for _, name := range names {
		s.notRead("record of "+name, m.Records.Links[name].Err)
		s.Links = append(s.Links, link(m, name))
	}
	s.notRead("systemd-resolved", m.Resolved.Err)
	return s
}

// notRead adds a source that could not be read, if there is an error.
func (s *Status) notRead(what string, err error) {
	if err != nil {
		s.NotRead = append(s.NotRead, NotRead{what, strings.TrimPrefix(err.Error(), "boot: ")})
	}
}

func link(m *machine.Snapshot, name string) Link {
	view := m.LinkView(name)
	l := Link{Interface: name, Index: m.Index(name), From: fromUnknown, Decision: view.Trace()}
	l.State, l.Reason = view.Record.State, view.Record.Reason
	if lease := m.LeaseOf(name); lease != nil {
		l.Lease = list(lease.Nameservers)
	}
	if _, known := m.NM.V.Device(name); known {
		l.DNS = &DNS{Resolved{list(view.DNS.Nameservers), list(view.DNS.Domains)}, list(view.DNS.Other)}
	}
	if n := m.NetworkdLink(name); n.Managed {
		l.Networkd = list(n.Nameservers)
	}
	if m.Resolved.Err == nil {
		l.Resolved = resolved(view.Have)
		l.From = from(l, view)
	}
	return l
}

// list returns an empty list instead of null for the JSON output.
func list[T any](l []T) []T { return append([]T{}, l...) }

func resolved(state resolv.State) *Resolved {
	state.Global = nil
	out := &Resolved{list(state.Addrs()), []string{}}
	for _, d := range state.Domains {
		name := d.Name
		if d.RouteOnly {
			name = "~" + name // as resolvectl writes it
		}
		out.Domains = append(out.Domains, name)
	}
	return out
}

// from returns what configured a link's nameservers: this program if they are
// recorded, NetworkManager if it wants them.
func from(l Link, v dispatch.LinkView) string {
	switch {
	case len(v.Have.Nameservers) == 0:
		return fromNobody
	case v.Record.State == boot.Pushed && v.Have.Equal(v.Record.Nameservers):
		return fromUs
	case len(l.Networkd) > 0 && v.Have.Contains(l.Networkd):
		return fromNetworkd
	case l.DNS == nil || len(l.DNS.Other) > 0:
		return fromUnknown
	case len(l.DNS.Nameservers) > 0 && v.Have.Contains(l.DNS.Nameservers):
		return fromNetworkManager
	}
	return fromOther
}
