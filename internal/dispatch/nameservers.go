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
	busLimit      = 2 * time.Second        // to connect to the bus and read the device
	resolvedLimit = 2 * time.Second        // for all calls to resolved
	downLimit     = 500 * time.Millisecond // for the one call to NetworkManager on down
	leastProbe    = 250 * time.Millisecond // without an answer before the run ended, for a nameserver to be silent
	linkRetry     = 100 * time.Millisecond // between tries for a link that resolved does not know yet
	finishRetry   = time.Second            // before the unit tries again; doubled up to
	finishMax     = 30 * time.Second
	absentLimit   = time.Minute // how long the unit waits for a service that is not running
)

// errNoBus says that there is no bus to connect to.
var errNoBus = errors.New("no bus")

// Nameservers configures the nameservers of links in systemd-resolved.
type Nameservers struct {
	*Env
	// Event is what the hook was run for; zero in the unit.
	Event nm.Event
}

// Link names a network interface.
type Link struct {
	Name  string
	Index int
}

// answer is what was read about a link.
type answer struct {
	bus *Bus // nil if it cannot be reached
	dev nm.Device
	err error
}

// Finish updates the nameservers of all links that have an IPv4 default route or a
// record of this boot, and removes the records of links that no longer exist. It
// retries until everything is done or ctx ends, and returns what is not done. It
// waits for a service that is not running only if nameservers were pushed, and for
// absentLimit at most: the start of the service is an event. retrying is called with
// what is not done when it retries for the first time.
func (n *Nameservers) Finish(ctx context.Context, retrying func(error)) error {
	absent := time.Now().Add(absentLimit)
	for delay := finishRetry; ; delay = min(2*delay, finishMax) {
		pushed, err := n.all(ctx)
		notRunning := errors.Is(err, nm.ErrNotRunning) || errors.Is(err, resolv.ErrNotRunning) || errors.Is(err, errNoBus)
		if err == nil || notRunning && (!pushed || time.Now().After(absent)) {
			return nil
		}
		if delay == finishRetry {
			retrying(err)
		}
		if !wait(ctx, delay) {
			return err
		}
	}
}

// all reconciles each link once. pushed reports whether there was a record of a push.
func (n *Nameservers) all(ctx context.Context) (pushed bool, err error) {
	n.RecordFailed(n.Store.RemoveGone(n.Exists))
	links := map[Link]bool{}
	for index, rec := range n.Store.Links() {
		links[Link{Name: rec.Interface, Index: index}] = true
		pushed = pushed || rec.State == boot.Pushed
	}
	for _, name := range n.DefaultRoutes() {
		if index, err := n.Index(name); err == nil {
			links[Link{Name: name, Index: index}] = true
		}
	}
	errs := make(chan error, len(links))
	for l := range links {
		go func() {
			err := n.reconcile(ctx, l, nil)
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

// read connects to the bus and reads the device, but not on down, when
// NetworkManager may be waiting for this program.
func (n *Nameservers) read(ctx context.Context, limit time.Duration, l Link) (a answer) {
	ctx, cancel := within(ctx, limit)
	defer cancel()
	a.bus, a.err = n.Connect(ctx)
	switch {
	case a.err != nil && ctx.Err() == nil:
		a.err = fmt.Errorf("%w: %w", errNoBus, a.err)
	case a.err == nil && n.Event.Action != nm.Down:
		a.dev, a.err = a.bus.Device(ctx, l.Name)
	}
	return a
}

// reconcile applies the policy to a link, under the lock of the link. If another
// run is waiting for the lock already it does nothing, because that run will see
// everything that this one could. first is what was read just before; it may be
// nil, and is read again after a wait for the lock.
func (n *Nameservers) reconcile(ctx context.Context, l Link, first *answer) error {
	end, waited, err := n.Store.LockLink(ctx, l.Index)
	if errors.Is(err, boot.ErrLocked) && !waited {
		return nil
	}
	if end, err = n.orWithout(end, err); err != nil {
		return err
	}
	defer end()
	v := LinkView{Down: n.Event.Action == nm.Down, External: n.Event.External, Primary: slices.Contains(n.DefaultRoutes(), l.Name), Own: n.OwnAddrs()}
	v.Record, _ = n.Store.Link(l.Index, l.Name) // a record that cannot be read counts as none
	if v.Record.State != boot.Pushed && (!v.Primary || v.Down || v.External) {
		return nil
	}
	if first == nil || waited {
		a := n.read(ctx, busLimit, l)
		first = &a
	}
	if first.err != nil && !errors.Is(first.err, nm.ErrNoDevice) {
		return first.err
	}
	v.Activated = first.dev.State == nm.StateActivated
	if first.dev.Lease != nil {
		v.Lease = first.dev.Lease.Nameservers
	}
	n.askDNS(ctx, *first, l, &v)
	pushed, err := n.act(ctx, first.bus, l, v)
	end() // no other run waits for the queries
	n.probe(ctx, first.bus, l, pushed)
	return err
}

// askDNS reads what NetworkManager wants. On down, NetworkManager may be blocked
// because it waits for this program.
func (n *Nameservers) askDNS(ctx context.Context, a answer, l Link, v *LinkView) {
	limit := busLimit
	if v.Down {
		limit = downLimit
	}
	ctx, cancel := within(ctx, limit)
	defer cancel()
	v.DNS, v.DNSErr = a.bus.DNSConfig(ctx, l.Name)
	none := v.DNSErr == nil && v.DNS.Empty() && !v.DNS.Global && !v.DNS.Excluded
	if none && v.Activated && (v.Record.State == boot.Pushed || n.Event.Action == nm.Reapply) {
		v.DNS, v.DNSErr = a.bus.IP4DNSConfig(ctx, a.dev)
	}
}

// act reads what resolved has and applies the policy. It returns the nameservers
// that it configured, if any.
func (n *Nameservers) act(ctx context.Context, bus *Bus, l Link, v LinkView) (pushed []netip.Addr, err error) {
	ctx, cancel := within(ctx, resolvedLimit)
	defer cancel()
	v.Have, v.HaveErr = bus.LinkState(ctx, l.Index)
	p := Decide(v)
	if p.Action == ActPush {
		if v.GlobalDNS, err = bus.GlobalDNS(ctx); err != nil {
			return nil, err
		}
		p = Decide(v)
	}
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
	case ActNone:
		err = errors.Join(v.DNSErr, v.HaveErr)
	case ActForget:
		n.record(l, boot.Link{State: boot.None})
	case ActLeave:
		n.leave(l, v, p)
	}
	if err != nil {
		return nil, err
	}
	return p.Nameservers, nil
}

// push writes the record first, and keeps it if resolved may have done or may do
// yet what it was asked: so there is at worst a record of what is not there.
// What was pushed before is cleared before the record names something else, so
// that an interrupted run leaves nothing that the record does not name.
func (n *Nameservers) push(ctx context.Context, bus *Bus, l Link, v LinkView, p Plan) error {
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
	n.record(l, rec)
	var err error
	if !same {
		err = bus.SetNameservers(ctx, l.Index, p.Nameservers)
	}
	for errors.Is(err, resolv.ErrNoSuchLink) && wait(ctx, linkRetry) {
		err = bus.SetNameservers(ctx, l.Index, p.Nameservers)
	}
	if err != nil {
		if definite(ctx, err) {
			n.record(l, refused(v, p))
		}
		return err
	}
	if p.SetDomains && len(p.Domains) > 0 {
		err = bus.SetDomains(ctx, l.Index, p.Domains)
	}
	if definite(ctx, err) {
		rec.Domains = nil // refused: they are not ours
		n.record(l, rec)
	}
	n.Log(journal.NameserversPushed, slog.String("interface", l.Name),
		slog.String("nameservers", join(p.Nameservers)), slog.String("domains", strings.Join(rec.Domains, " ")))
	return errors.Join(err, bus.FlushCaches(ctx))
}

// definite reports whether resolved refused a change; otherwise it was made, or
// may have been.
func definite(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, resolv.ErrNoReply) && !errors.Is(err, resolv.ErrNotRunning)
}

// refused returns the record after resolved refused the servers of a push: of what
// was pushed before, only domains that did not change are there.
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
func (n *Nameservers) undo(ctx context.Context, bus *Bus, l Link, v LinkView, p Plan) error {
	err := bus.SetNameservers(ctx, l.Index, nil)
	if err == nil && p.SetDomains {
		err = bus.SetDomains(ctx, l.Index, nil)
	}
	if err != nil && !errors.Is(err, resolv.ErrNoSuchLink) {
		return err
	}
	n.record(l, boot.Link{State: boot.None})
	if err != nil {
		return nil
	}
	n.Log(journal.NameserversUndone, slog.String("interface", l.Name),
		slog.String("nameservers", join(v.Record.Nameservers)), slog.String("reason", p.Reason.Text))
	return bus.FlushCaches(ctx)
}

// probe queries each nameserver and logs those that do not answer.
func (n *Nameservers) probe(ctx context.Context, bus *Bus, l Link, servers []netip.Addr) {
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
				n.Log(journal.NameserverSilent, slog.String("interface", l.Name),
					slog.String("nameserver", s.String()), slog.Any("error", err))
			}
		})
	}
	wg.Wait()
}

// leave records why a link is not changed, and logs it once.
func (n *Nameservers) leave(l Link, v LinkView, p Plan) {
	if v.Record.State == boot.Left && v.Record.Reason == p.Reason.Text {
		return
	}
	n.record(l, boot.Link{State: boot.Left, Reason: p.Reason.Text})
	if p.Reason == ResolvedUnavailable {
		n.Log(journal.ResolvedUnavailable, slog.String("interface", l.Name), slog.Any("error", v.HaveErr))
		return
	}
	n.Log(journal.NameserversLeft, slog.String("interface", l.Name), slog.String("reason", p.Reason.Text))
}

func (n *Nameservers) record(l Link, rec boot.Link) {
	rec.Interface, rec.UpdatedAt = l.Name, time.Now()
	n.RecordFailed(n.Store.WriteLink(l.Index, rec))
}

func join(servers []netip.Addr) string { return strings.Trim(fmt.Sprint(servers), "[]") }
