package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

const (
	busLimit      = 2 * time.Second        // to connect to the bus and read NetworkManager's state
	resolvedLimit = 2 * time.Second        // for all calls to resolved
	downLimit     = 500 * time.Millisecond // for the same on down
	leastProbe    = 250 * time.Millisecond // without an answer before the run ended, for a nameserver to be silent
	linkRetry     = 100 * time.Millisecond // between tries for a link that resolved does not know yet
	finishRetry   = time.Second            // before the unit tries again; doubled up to
	finishMax     = 30 * time.Second
	absentLimit   = time.Minute // how long the unit waits for a service that is not running
)

// errNoBus says that there is no bus to connect to.
var errNoBus = errors.New("no bus")

// Link names a network interface.
type Link struct {
	Name  string
	Index int
}

// FinishNameservers updates all links that have an IPv4 default route or a record,
// until everything is done or ctx ends, and returns what is not done. For a service
// that is not running it waits only if nameservers were pushed, and not for long: its
// start is an event. retrying is called with what is not done, before the first retry.
func (e *Env) FinishNameservers(ctx context.Context, retrying func(error)) error {
	absent := time.Now().Add(absentLimit)
	for delay := finishRetry; ; delay = min(2*delay, finishMax) {
		pushed, err := e.reconcileAll(ctx)
		notRunning := errors.Is(err, nm.ErrNotRunning) || errors.Is(err, resolv.ErrNotRunning) || errors.Is(err, errNoBus)
		if err == nil || notRunning && (!pushed || time.Now().After(absent)) {
			return nil
		}
		if delay == finishRetry && ctx.Err() == nil {
			retrying(err)
		}
		if !wait(ctx, delay) {
			return err
		}
	}
}

// reconcileAll reconciles each link once. pushed reports whether any had a push.
func (e *Env) reconcileAll(ctx context.Context) (pushed bool, err error) {
	e.RecordFailed(e.Store.RemoveGone(e.Exists))
	links := map[Link]bool{}
	for index, rec := range e.Store.Links() {
		links[Link{Name: rec.Interface, Index: index}] = true
		pushed = pushed || rec.State == boot.Pushed
	}
	for _, name := range e.DefaultRoutes() {
		if index, err := e.Index(name); err == nil {
			links[Link{Name: name, Index: index}] = true
		}
	}
	errs := make(chan error, len(links))
	for l := range links {
		go func() {
			err := e.reconcile(ctx, ctx, l)
			if err != nil {
				err = fmt.Errorf("nameservers of %s: %w", l.Name, err)
			}
			errs <- err
		}()
	}
	for range links {
		err = errors.Join(err, <-errs)
	}
	return pushed, err
}

// read connects to the bus, and reads NetworkManager's state. The bus is nil if it
// cannot be reached.
func (e *Env) read(ctx context.Context, limit time.Duration) (bus *Bus, s nm.Snapshot, err error) {
	ctx, cancel := within(ctx, limit)
	defer cancel()
	bus, err = e.Connect(ctx)
	switch {
	case err == nil:
		s, err = bus.NetworkManager(ctx)
	case ctx.Err() == nil:
		err = fmt.Errorf("%w: %w", errNoBus, err)
	}
	return bus, s, err
}

// reconcile applies the policy to a link, under the lock of the link. It does nothing
// if another run is waiting for the lock, which will see all that this one could. On
// down, NetworkManager may be blocked because it waits for this program. New
// nameservers are asked until asking ends.
func (e *Env) reconcile(ctx, asking context.Context, l Link) error {
	end, err := e.orWithout(e.Store.LockLink(ctx, l.Index))
	if errors.Is(err, boot.ErrQueued) {
		return nil
	}
	if err != nil {
		return err
	}
	defer end()
	v := LinkView{Down: e.Event.Action == nm.Down, External: e.Event.External, Primary: slices.Contains(e.DefaultRoutes(), l.Name), Own: e.OwnAddrs()}
	v.Record, _ = e.Store.Link(l.Index, l.Name) // a record that cannot be read counts as none
	if v.Record.State != boot.Pushed && (!v.Primary || v.Down || v.External) {
		return nil
	}
	limit := busLimit
	if v.Down {
		limit = downLimit
	}
	bus, s, err := e.read(ctx, limit)
	if err != nil && (bus == nil || !v.Down) {
		return err
	}
	v.Add(s, err, l.Name, e.Event.Action == nm.Reapply)
	pushed, err := e.act(ctx, bus, l, v)
	end() // no other run waits for the queries
	e.probe(asking, bus, l, pushed)
	return err
}

// act reads what resolved has and applies the policy. It returns the nameservers
// that it configured, if any.
func (e *Env) act(ctx context.Context, bus *Bus, l Link, v LinkView) (pushed []netip.Addr, err error) {
	ctx, cancel := within(ctx, resolvedLimit)
	defer cancel()
	v.Have, v.HaveErr = bus.LinkState(ctx, l.Index)
	p := Decide(v)
	switch p.Action {
	case ActPush:
		err = e.push(ctx, bus, l, v, p)
	case ActUndo:
		err = e.undo(ctx, bus, l, v, p)
	}
	if errors.Is(err, resolv.ErrLinkBusy) {
		v.HaveErr, err = err, nil
		p = Decide(v)
	}
	switch p.Action {
	case ActNone:
		err = errors.Join(v.DNSErr, v.HaveErr)
	case ActForget:
		e.record(l, boot.Link{State: boot.None})
	case ActLeave:
		e.leave(l, v, p)
	}
	if err != nil {
		return nil, err
	}
	return p.Nameservers, nil
}

// push writes the record first, and keeps it unless resolved refuses the change. What
// was pushed before is cleared before that. So an interrupted run leaves nothing on
// the link that the record does not name.
func (e *Env) push(ctx context.Context, bus *Bus, l Link, v LinkView, p Plan) error {
	same := v.Have.Equal(p.Nameservers) // then only the domains change
	if !same && len(v.Have.Nameservers) > 0 {
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
	e.record(l, rec)
	var err error
	if !same {
		err = bus.SetNameservers(ctx, l.Index, p.Nameservers)
	}
	for errors.Is(err, resolv.ErrNoSuchLink) && wait(ctx, linkRetry) {
		err = bus.SetNameservers(ctx, l.Index, p.Nameservers)
	}
	if err != nil {
		if definite(ctx, err) {
			e.record(l, refused(v, p))
		}
		return err
	}
	if p.SetDomains && len(p.Domains) > 0 {
		err = bus.SetDomains(ctx, l.Index, p.Domains)
	}
	if definite(ctx, err) {
		rec.Domains = nil // refused: they are not ours
		e.record(l, rec)
	}
	e.Log(journal.NameserversPushed, slog.String("interface", l.Name),
		slog.String("nameservers", join(p.Nameservers)), slog.String("domains", strings.Join(rec.Domains, " ")))
	return errors.Join(err, bus.FlushCaches(ctx))
}

// definite reports whether resolved refused a change; otherwise it was made, or
// may have been.
func definite(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, resolv.ErrNoReply) && !errors.Is(err, resolv.ErrNotRunning)
}

// refused returns the record after resolved refused the servers of a push. Only
// domains that did not change are still on the link.
func refused(v LinkView, p Plan) boot.Link {
	switch {
	case !p.SetDomains && len(p.Domains) > 0:
		return boot.Link{State: boot.Pushed, Domains: p.Domains}
	case v.Record.State == boot.Left:
		return v.Record // its reason may still be valid, and was logged
	}
	return boot.Link{State: boot.None}
}

// undo sets empty lists. It does not call RevertLink, which would also revert what
// NetworkManager has set.
func (e *Env) undo(ctx context.Context, bus *Bus, l Link, v LinkView, p Plan) error {
	err := bus.SetNameservers(ctx, l.Index, nil)
	if err == nil && p.SetDomains {
		err = bus.SetDomains(ctx, l.Index, nil)
	}
	if err != nil && !errors.Is(err, resolv.ErrNoSuchLink) {
		return err
	}
	e.record(l, boot.Link{State: boot.None})
	if err != nil {
		return nil
	}
	e.Log(journal.NameserversUndone, slog.String("interface", l.Name),
		slog.String("nameservers", join(v.Record.Nameservers)), slog.String("reason", p.Reason.Text))
	return bus.FlushCaches(ctx)
}

// probe queries each nameserver and logs those that do not answer.
func (e *Env) probe(ctx context.Context, bus *Bus, l Link, servers []netip.Addr) {
	var wg sync.WaitGroup
	for _, s := range servers {
		if s.Is6() && s.IsLinkLocalUnicast() {
			s = s.WithZone(l.Name)
		}
		wg.Go(func() {
			began := time.Now()
			_, err := bus.Probe(ctx, s)
			cut := ctx.Err() != nil && time.Since(began) < leastProbe
			if err != nil && !cut {
				e.Log(journal.NameserverSilent, slog.String("interface", l.Name),
					slog.String("nameserver", s.String()), slog.Any("error", err))
			}
		})
	}
	wg.Wait()
}

// leave records why a link is not changed, and logs it once.
func (e *Env) leave(l Link, v LinkView, p Plan) {
	if v.Record.State == boot.Left && v.Record.Reason == p.Reason.Text {
		return
	}
	e.record(l, boot.Link{State: boot.Left, Reason: p.Reason.Text})
	if p.Reason == ResolvedUnavailable {
		e.Log(journal.ResolvedUnavailable, slog.String("interface", l.Name), slog.Any("error", v.HaveErr))
		return
	}
	e.Log(journal.NameserversLeft, slog.String("interface", l.Name), slog.String("reason", p.Reason.Text))
}

func (e *Env) record(l Link, rec boot.Link) {
	rec.Interface, rec.UpdatedAt = l.Name, time.Now()
	e.RecordFailed(e.Store.WriteLink(l.Index, rec))
}

func join(servers []netip.Addr) string { return strings.Trim(fmt.Sprint(servers), "[]") }
