// Package status says how this boot's check-in and the links' nameservers
// stand: what the records say, beside what NetworkManager and systemd-resolved
// say now. It only looks.
package status

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/azure"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
)

// version counts changes of the JSON output that break its readers.
const version = 1

// Status is the JSON output: docs/schema/status.json.
type Status struct {
	Version  int           `json:"version"`
	Azure    bool          `json:"azure"`
	Platform string        `json:"platform"` // what it is told by
	BootID   string        `json:"boot_id"`  // "" if it cannot be read
	CheckIn  *boot.CheckIn `json:"check_in"` // nil if nothing has checked in, or tried to, in this boot
	Links    []Link        `json:"links"`
	NotRead  []NotRead     `json:"not_read"`

	recordErr error
}

// Link is how the nameservers of a link stand.
type Link struct {
	Interface string `json:"interface"`
	Index     int    `json:"ifindex"` // 0 if the kernel does not tell
	// Lease has the nameservers of the DHCPv4 lease; nil without one.
	Lease []netip.Addr `json:"lease_nameservers"`
	// Wish is NetworkManager's; nil if that could not be asked.
	Wish *Wish `json:"networkmanager"`
	// Resolved is what systemd-resolved has for the link; nil if that could not be
	// asked.
	Resolved *Resolved `json:"resolved"`
	// From tells who gave resolved what it has: "nm-azure-dispatch",
	// "networkmanager", "other", "nobody", or "unknown".
	From string `json:"from"`
	// State and Reason are the record's; "" without one.
	State  boot.LinkState `json:"state"`
	Reason string         `json:"reason"`
}

// Wish is what NetworkManager wants a link to have.
type Wish struct {
	Nameservers []netip.Addr `json:"nameservers"`
	Domains     []string     `json:"domains"`
	Other       []string     `json:"other"` // servers that are no plain addresses
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
	fromOther          = "other"
	fromNobody         = "nobody"
	fromUnknown        = "unknown"
)

// Env is where the status is read.
type Env struct {
	Root           fs.FS // the file system from / on
	Records        boot.Dir
	NetworkManager func(context.Context) (live.NetworkManager, error)
	Resolved       func(ctx context.Context, ifindex int) (live.Resolved, error)
}

// Read reads the status. On a machine that is not Azure nothing is read beyond
// that.
func Read(ctx context.Context, env Env) Status {
	s := Status{Version: version, Links: []Link{}, NotRead: []NotRead{}}
	var err error
	if s.Azure, s.Platform, err = azure.Detect(env.Root); err != nil {
		s.Platform = err.Error()
		s.notRead("platform", err)
	}
	if !s.Azure {
		return s
	}
	if s.BootID, err = boot.ID(env.Root); err != nil {
		s.notRead("boot ID", err)
	}
	rec, err := env.Records.CheckIn(s.BootID)
	switch {
	case err == nil:
		s.CheckIn = &rec
	case !errors.Is(err, fs.ErrNotExist):
		s.recordErr = err
		s.notRead("record of the check-in", err)
	}
	n, err := env.NetworkManager(ctx)
	if err != nil {
		s.notRead("NetworkManager", err)
	}
	resolvedErr := error(nil)
	for _, name := range interfaces(env, n) {
		l := Link{Interface: name, From: fromUnknown}
		l.Index, _ = link.Index(env.Root, name)
		rec, err := env.Records.Link(l.Index, s.BootID, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.notRead("record of "+name, err)
		}
		l.State, l.Reason = rec.State, rec.Reason
		if d, ok := n.Device(name); ok {
			if d.Lease != nil {
				l.Lease = append([]netip.Addr{}, d.Lease.Nameservers...)
			}
			w := n.DNSConfig(name)
			l.Wish = &Wish{append([]netip.Addr{}, w.Nameservers...), append([]string{}, w.Domains...), append([]string{}, w.Other...)}
		}
		if resolvedErr == nil {
			var r live.Resolved
			if r, resolvedErr = env.Resolved(ctx, l.Index); resolvedErr == nil {
				l.Resolved = resolved(r)
				l.From = from(l, rec, r)
			}
		}
		s.Links = append(s.Links, l)
	}
	if resolvedErr != nil {
		s.notRead("systemd-resolved", resolvedErr)
	}
	return s
}

func (s *Status) notRead(what string, err error) {
	s.NotRead = append(s.NotRead, NotRead{what, strings.TrimPrefix(err.Error(), "boot: ")})
}

// interfaces returns those with a lease, and those that a default route or a
// record makes worth a look.
func interfaces(env Env, n live.NetworkManager) []string {
	names := slices.Clone(link.DefaultRoutes(env.Root))
	for _, d := range n.Devices {
		if d.Lease != nil && !slices.Contains(names, d.Interface) {
			names = append(names, d.Interface)
		}
	}
	return names
}

func resolved(r live.Resolved) *Resolved {
	out := &Resolved{Nameservers: []netip.Addr{}, Domains: []string{}}
	for _, s := range r.State.Nameservers {
		out.Nameservers = append(out.Nameservers, s.Addr)
	}
	for _, d := range r.State.Domains {
		name := d.Name
		if d.RouteOnly {
			name = "~" + name // as resolvectl spells it
		}
		out.Domains = append(out.Domains, name)
	}
	return out
}

// from tells who gave a link its nameservers: what is recorded is ours, what
// NetworkManager wishes is its own.
func from(l Link, rec boot.Link, r live.Resolved) string {
	switch {
	case len(r.State.Nameservers) == 0:
		return fromNobody
	case rec.State == boot.Pushed && r.State.Equal(rec.Nameservers):
		return fromUs
	case l.Wish == nil || len(l.Wish.Other) > 0:
		return fromUnknown
	case len(l.Wish.Nameservers) > 0 && r.State.Contains(l.Wish.Nameservers):
		return fromNetworkManager
	}
	return fromOther
}

// Ready reports whether Azure has been told that the machine is ready.
func (s Status) Ready() bool { return s.CheckIn != nil && s.CheckIn.State == boot.Ready }

// attempts is a number of attempts for people.
func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}
