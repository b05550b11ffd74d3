package dispatch

import (
	"cmp"
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

// Up compares lease, NetworkManager's configuration and resolved, and makes the
// smallest change that is called for. lease is nil if the device has none.
// primary says that the link has the IPv4 default route. The caller has the
// link's lock, and has looked at both since it has. Up returns the nameservers
// that it pushed, if it did.
func (n *Nameservers) Up(ctx context.Context, bus *Bus, l Link, lease *nm.Lease, primary bool) ([]netip.Addr, error) {
	rec, _ := n.Records.Link(l.Index, n.BootID, l.Name) // read under the lock; unreadable is none
	if !primary && rec.State != boot.Pushed {
		return nil, nil
	}
	v := LinkView{Primary: primary, Activated: true, Record: rec, Own: n.OwnAddrs()}
	if lease != nil {
		v.Lease = lease.Nameservers
	}
	ask := bus.Entry
	if rec.State == boot.Pushed || n.Reapplied {
		ask = bus.Wish
	}
	v.DNS, v.DNSErr = ask(ctx, l.Name)
	return n.act(ctx, bus, l, v)
}

// Down removes what we pushed, if it is still there and NetworkManager wants
// nothing: resolved itself keeps a link's servers over a down. The caller has
// the link's lock.
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
	v := LinkView{Down: true, Record: rec, Own: n.OwnAddrs()}
	if v.DNS, v.DNSErr = bus.Entry(ask, l.Name); v.DNSErr != nil && primary() {
		return nil
	}
	_, err = n.act(ctx, bus, l, v)
	return err
}

// act reads what resolved has, and carries out what the policy says.
func (n *Nameservers) act(ctx context.Context, bus *Bus, l Link, v LinkView) ([]netip.Addr, error) {
	if v.DNSErr != nil && !v.Down {
		return nil, v.DNSErr
	}
	ctx, cancel := context.WithTimeoutCause(ctx, resolvedLimit, fmt.Errorf("systemd-resolved: no answer within %v", resolvedLimit))
	defer cancel()
	v.Have, v.HaveErr = bus.LinkState(ctx, l.Index)
	p := Decide(v)
	var err error
	switch p.Action {
	case ActPush:
		err = n.push(ctx, bus, l, v, p)
	case ActUndo:
		err = n.undo(ctx, bus, l, v, p)
	}
	if errors.Is(err, resolv.ErrLinkBusy) {
		v.HaveErr, err = err, nil
		p = Decide(v)
	}
	switch p.Action {
	case ActPush:
		if err == nil {
			return p.Nameservers, nil
		}
	case ActForget:
		n.record(l, boot.Link{State: boot.None})
	case ActLeave:
		n.leave(l, v, p)
	case ActNone:
		err = cmp.Or(err, v.HaveErr)
	}
	return nil, err
}

// push writes the record first, and keeps it if resolved did not answer in time
// and may do it yet: so there is at worst a record of what is not there, and
// servers that nobody removes only where no record can be kept at all. What was
// pushed before is cleared before the record names something else: what resolved
// has and the record agree at any moment.
func (n *Nameservers) push(ctx context.Context, bus *Bus, l Link, v LinkView, p Plan) error {
	changed := v.Record.State == boot.Pushed && !sameSet(v.Record.Nameservers, p.Nameservers) && len(v.Have.Nameservers) > 0
	if changed {
		if err := bus.SetNameservers(ctx, l.Index, nil); err != nil {
			return err
		}
	}
	if p.SetDomains && len(v.Have.Domains) > 0 {
		if err := bus.SetDomains(ctx, l.Index, nil); err != nil {
			return err
		}
	}
	rec := boot.Link{State: boot.Pushed, Nameservers: p.Nameservers, Domains: p.Domains}
	n.record(l, rec)
	err := bus.SetNameservers(ctx, l.Index, p.Nameservers)
	for errors.Is(err, resolv.ErrNoSuchLink) && wait(ctx, linkRetry) {
		err = bus.SetNameservers(ctx, l.Index, p.Nameservers)
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, resolv.ErrNoReply) && !errors.Is(err, resolv.ErrNotRunning) {
			n.record(l, refused(v, changed, p.SetDomains))
		}
		return err
	}
	if p.SetDomains && len(p.Domains) > 0 {
		err = bus.SetDomains(ctx, l.Index, p.Domains)
	}
	if err != nil && ctx.Err() == nil {
		rec.Domains = nil // refused: they are not ours
		n.record(l, rec)
	}
	err = errors.Join(err, flush(ctx, bus))
	n.Log(journal.NameserversPushed, slog.String("interface", l.Name),
		slog.String("nameservers", join(p.Nameservers)), slog.String("domains", strings.Join(rec.Domains, " ")))
	return err
}

// refused returns the record after resolved refused the servers of a push.
func refused(v LinkView, cleared, clearedDomains bool) boot.Link {
	rec := v.Record
	switch {
	case rec.State == "", rec.State == boot.Pushed && (cleared || len(v.Have.Nameservers) == 0):
		return boot.Link{State: boot.None}
	case clearedDomains:
		rec.Domains = nil
	}
	return rec
}

// undo clears with empty lists, never with RevertLink.
func (n *Nameservers) undo(ctx context.Context, bus *Bus, l Link, v LinkView, p Plan) error {
	err := bus.SetNameservers(ctx, l.Index, nil)
	if errors.Is(err, resolv.ErrNoSuchLink) {
		n.record(l, boot.Link{State: boot.None})
		return nil
	}
	if err != nil {
		return err
	}
	if p.SetDomains {
		if err := bus.SetDomains(ctx, l.Index, nil); err != nil {
			return err
		}
	}
	n.record(l, boot.Link{State: boot.None})
	n.Log(journal.NameserversUndone, slog.String("interface", l.Name),
		slog.String("nameservers", join(v.Record.Nameservers)), slog.String("reason", p.Reason))
	return flush(ctx, bus)
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

// leave records why a link is left alone, and reports it unless that was done.
func (n *Nameservers) leave(l Link, v LinkView, p Plan) {
	if v.Record.State == boot.Left && v.Record.Reason == p.Reason {
		return
	}
	n.record(l, boot.Link{State: boot.Left, Reason: p.Reason})
	if p.Code == ResolvedUnavailable {
		n.Log(journal.ResolvedUnavailable, slog.String("interface", l.Name), slog.Any("error", v.HaveErr))
		return
	}
	n.Log(journal.NameserversLeft, slog.String("interface", l.Name), slog.String("reason", p.Reason))
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
