package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

const (
	resolvedLimit = 2 * time.Second        // for all that is asked of resolved in a run
	downLimit     = 500 * time.Millisecond // for the one question to NetworkManager on down
	linkRetry     = 100 * time.Millisecond // between tries for a link that resolved does not know yet
)

// Nameservers sees to it that resolved has a link's nameservers.
type Nameservers struct {
	BootID  string
	Records boot.Dir
	// OwnAddrs returns the machine's own addresses.
	OwnAddrs func() []netip.Addr
	// Reapplied says that NetworkManager has just reapplied the profile to a
	// device that was up: it may have lost its own wish then, see nm.Client.Wish.
	Reapplied bool
	Log       Log

	recordFailedSaid bool
}

// Link names a network interface.
type Link struct {
	Name  string
	Index int
}

// Up compares lease, wish and resolved, and makes the smallest change that is
// called for. lease is nil if the device has none. primary says that the link
// has the IPv4 default route. The caller has the link's lock, and has looked at
// both since it has. Up returns the nameservers that it pushed, if it did.
func (n *Nameservers) Up(ctx context.Context, bus *Bus, l Link, lease *nm.Lease, primary bool) ([]netip.Addr, error) {
	rec, _ := n.Records.Link(l.Index, n.BootID, l.Name) // read under the lock; unreadable is none
	if !primary && rec.State != boot.Pushed {
		return nil, nil
	}
	ask := bus.Entry
	if rec.State == boot.Pushed || n.Reapplied {
		ask = bus.Wish
	}
	wish, err := ask(ctx, l.Name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, resolvedLimit, fmt.Errorf("systemd-resolved: no answer within %v", resolvedLimit))
	defer cancel()
	have, err := bus.LinkState(ctx, l.Index)
	if err != nil {
		return nil, n.refused(l, rec, err)
	}
	own := n.OwnAddrs()
	v := linkView{primary: primary, wish: usableWish(wish, own), have: have, rec: rec}
	if lease != nil {
		v.lease = usable(lease.Nameservers, own)
	}
	switch what, reason := decide(v); what {
	case push:
		return v.wish.Nameservers, n.push(ctx, bus, l, v)
	case undo:
		return nil, n.undo(ctx, bus, l, v, reason)
	case forget:
		n.record(l, boot.Link{State: boot.None})
	case leave:
		n.leave(l, rec, reason)
	case keep:
		if rec.State == boot.Left {
			n.record(l, boot.Link{State: boot.None})
		}
	}
	return nil, nil
}

// Down takes back what we pushed, if it is still there and NetworkManager
// wishes nothing: resolved itself keeps a link's servers over a down. A wish
// means that the device is active again; its own event sees to the link.
// NetworkManager may be waiting for us and unable to answer, or busy: then the
// default route tells whether the device is active.
func (n *Nameservers) Down(ctx context.Context, bus *Bus, l Link, primary func() bool) error {
	unlock, err := n.lock(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()
	rec, err := n.Records.Link(l.Index, n.BootID, l.Name)
	if err != nil || rec.State != boot.Pushed {
		return nil // undone meanwhile
	}
	ask, cancel := context.WithTimeout(ctx, downLimit)
	defer cancel()
	wish, err := bus.Entry(ask, l.Name)
	if err == nil && !wish.Empty() || err != nil && primary() {
		return nil
	}
	ctx, cancel = context.WithTimeoutCause(ctx, resolvedLimit, fmt.Errorf("systemd-resolved: no answer within %v", resolvedLimit))
	defer cancel()
	have, err := bus.LinkState(ctx, l.Index)
	if err != nil {
		return n.refused(l, rec, err)
	}
	if !have.Equal(rec.Nameservers) {
		n.record(l, boot.Link{State: boot.None})
		return nil
	}
	return n.undo(ctx, bus, l, linkView{have: have, rec: rec}, "the link went down")
}

// push writes the record first, and keeps it if resolved did not answer in time
// and may do it yet: so there is at worst a record of what is not there, and
// servers that nobody takes back only where no record can be kept at all.
func (n *Nameservers) push(ctx context.Context, bus *Bus, l Link, v linkView) error {
	servers := v.wish.Nameservers
	domains, setDomains := domainsFor(v)
	rec := boot.Link{State: boot.Pushed, Nameservers: servers, Domains: v.rec.Domains}
	if setDomains {
		rec.Domains = domains
	}
	n.record(l, rec)
	err := bus.SetNameservers(ctx, l.Index, servers)
	for errors.Is(err, resolv.ErrNoSuchLink) && wait(ctx, linkRetry) {
		err = bus.SetNameservers(ctx, l.Index, servers)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		if v.rec.State == "" {
			v.rec.State = boot.None
		}
		n.record(l, v.rec) // nothing has changed
		return n.refused(l, v.rec, err)
	}
	if setDomains {
		err = bus.SetDomains(ctx, l.Index, domains)
	}
	if err != nil && ctx.Err() == nil {
		rec.Domains = v.rec.Domains // refused: they are not ours
		n.record(l, rec)
	}
	err = errors.Join(err, flush(ctx, bus))
	n.Log(journal.NameserversPushed, slog.String("interface", l.Name),
		slog.String("nameservers", join(servers)), slog.String("domains", strings.Join(rec.Domains, " ")))
	return err
}

// undo clears with empty lists, never with RevertLink.
func (n *Nameservers) undo(ctx context.Context, bus *Bus, l Link, v linkView, reason string) error {
	err := bus.SetNameservers(ctx, l.Index, nil)
	if errors.Is(err, resolv.ErrNoSuchLink) {
		n.record(l, boot.Link{State: boot.None})
		return nil
	}
	if err != nil {
		return n.refused(l, v.rec, err)
	}
	if len(v.rec.Domains) > 0 && v.have.EqualDomains(v.rec.Domains) {
		err = bus.SetDomains(ctx, l.Index, nil)
	}
	err = errors.Join(err, flush(ctx, bus))
	n.record(l, boot.Link{State: boot.None})
	n.Log(journal.NameserversUndone, slog.String("interface", l.Name),
		slog.String("nameservers", join(v.rec.Nameservers)), slog.String("reason", reason))
	return err
}

// flush makes resolved forget what it knew before. One that was ended or started
// anew since the change has nothing to forget.
func flush(ctx context.Context, bus *Bus) error {
	if err := bus.FlushCaches(ctx); !errors.Is(err, resolv.ErrNotRunning) {
		return err
	}
	return nil
}

// Probe asks each nameserver and names those that do not answer. It needs no
// lock: nobody is to wait for a nameserver that is silent.
func (n *Nameservers) Probe(ctx context.Context, bus *Bus, l Link, servers []netip.Addr) {
	var wg sync.WaitGroup
	for _, s := range servers {
		if s.Is6() && s.IsLinkLocalUnicast() {
			s = s.WithZone(l.Name)
		}
		wg.Go(func() {
			if _, err := bus.Probe(ctx, s); err != nil {
				n.Log(journal.NameserverSilent, slog.String("interface", l.Name),
					slog.String("nameserver", s.String()), slog.Any("error", err))
			}
		})
	}
	wg.Wait()
}

// refused sorts out why resolved did not do what it was asked: two reasons are
// a normal state of a machine, and said once.
func (n *Nameservers) refused(l Link, rec boot.Link, err error) error {
	switch {
	case errors.Is(err, resolv.ErrNotRunning):
		if rec.Reason != reasonAbsent {
			n.record(l, boot.Link{State: boot.Left, Reason: reasonAbsent})
			n.Log(journal.ResolvedUnavailable, slog.String("interface", l.Name), slog.Any("error", err))
		}
		return nil
	case errors.Is(err, resolv.ErrLinkBusy):
		n.leave(l, rec, reasonBusy)
		return nil
	}
	return err
}

// leave records why a link is left alone, and says it unless that was said.
func (n *Nameservers) leave(l Link, rec boot.Link, reason string) {
	if rec.State == boot.Left && rec.Reason == reason {
		return
	}
	n.record(l, boot.Link{State: boot.Left, Reason: reason})
	n.Log(journal.NameserversLeft, slog.String("interface", l.Name), slog.String("reason", reason))
}

func (n *Nameservers) lock(ctx context.Context, l Link) (func(), error) {
	unlock, err := n.Records.LockLink(ctx, l.Index)
	if errors.Is(err, boot.ErrLocked) {
		return nil, err
	}
	if err != nil {
		n.Log(journal.RecordFailed, slog.Any("error", err))
		return func() {}, nil
	}
	return unlock, nil
}

func (n *Nameservers) record(l Link, rec boot.Link) {
	rec.BootID, rec.Interface, rec.UpdatedAt = n.BootID, l.Name, time.Now()
	if err := n.Records.WriteLink(l.Index, rec); err != nil && !n.recordFailedSaid {
		n.recordFailedSaid = true
		n.Log(journal.RecordFailed, slog.Any("error", err))
	}
}

func join(servers []netip.Addr) string {
	s := make([]string, len(servers))
	for i, a := range servers {
		s[i] = a.String()
	}
	return strings.Join(s, " ")
}

// wait reports whether the time passed before the context ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
