package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Budget bounds the hook if the unit cannot be started: a dispatcher script
// delays the activation of other devices, even one in no-wait.d.
const Budget = 5 * time.Second

const (
	handOverAfter = time.Second            // when the unit takes over
	handOverLimit = 250 * time.Millisecond // to start the unit
	leaseLimit    = 700 * time.Millisecond // to read the lease before that, so that there is time for the default address
)

// Unit finishes what the hook could not.
const Unit = "nm-azure-checkin.service"

// Hook handles Env.Event on an Azure VM.
type Hook struct{ *CheckIn }

// unfinished is what is pending of both tasks.
type unfinished struct {
	checkIn     error // boot.ErrLocked: another process does it
	record      boot.CheckIn
	nameservers error
	lease       answer // what was read for the check-in so far
}

// errNotBegun is the state of a pending task before its first run.
var errNotBegun = errors.New("not begun")

// Run performs both tasks, in parallel. After one second it hands over what is pending
// to the unit; if that cannot be started, it continues up to the Budget. The error is
// nil if everything is done or handed over.
func (h Hook) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Budget, fmt.Errorf("not done after %v", Budget))
	defer cancel()
	l := Link{Name: h.Event.Interface}
	var err error
	if l.Index, err = h.Index(l.Name); err != nil {
		h.RecordFailed(h.Store.RemoveGone(h.Exists)) // the nameservers were removed with the link
		return nil
	}
	if h.Event.Action == nm.Down || h.Event.Action == nm.Up && !h.Event.DHCP4 {
		// Down, or a static profile, or IPv6 was faster: then dhcp4-change follows.
		if rec, err := h.Store.Link(l.Index, l.Name); err != nil || rec.State != boot.Pushed {
			return nil
		}
	}
	pending := unfinished{nameservers: errNotBegun}
	if _, done := h.CheckIn.Done(); !done && h.Event.Action != nm.Down {
		pending.checkIn = errNotBegun
	}
	soon, cancelSoon := context.WithTimeoutCause(ctx, handOverAfter, fmt.Errorf("not done after %v", handOverAfter))
	defer cancelSoon()
	pending = h.tasks(soon, leaseLimit, l, pending)
	if pending.checkIn == nil && pending.nameservers == nil {
		return nil
	}
	unitErr := h.handOver(ctx, pending)
	if unitErr == nil || pending.held() {
		return nil
	}
	return h.giveUp(h.tasks(ctx, busLimit, l, pending), unitErr)
}

// held reports whether only a check-in is pending, which another process is doing.
func (u unfinished) held() bool {
	return u.nameservers == nil && errors.Is(u.checkIn, boot.ErrLocked)
}

// tasks runs the pending tasks until ctx ends. The lease is read once for both.
func (h Hook) tasks(ctx context.Context, limit time.Duration, l Link, todo unfinished) (pending unfinished) {
	var first *answer
	pending.lease = todo.lease // NetworkManager may have stopped since then
	if todo.checkIn != nil && (todo.lease.bus == nil || todo.lease.err != nil) {
		pending.lease = h.read(ctx, limit, l)
		first = &pending.lease
	}
	var wg sync.WaitGroup
	if todo.nameservers != nil {
		wg.Go(func() { pending.nameservers = h.reconcile(ctx, l, first) })
	}
	if todo.checkIn != nil {
		wg.Go(func() { pending.record, pending.checkIn = h.checkIn(ctx, pending.lease) })
	}
	wg.Wait()
	return pending
}

// checkIn checks in if the lease is that of the primary interface: the WireServer
// may not answer others. Without an answer it uses the default address.
func (h Hook) checkIn(ctx context.Context, a answer) (boot.CheckIn, error) {
	var t Target
	switch {
	case errors.Is(a.err, nm.ErrNoDevice):
		return boot.CheckIn{}, nil
	case a.err != nil:
		t = DefaultTarget(h.Event.Interface, "the lease cannot be read: "+a.err.Error())
	case a.dev.Lease == nil || !a.dev.Lease.Primary():
		return boot.CheckIn{}, nil
	default:
		t = TargetOf(a.dev.Interface, *a.dev.Lease, h.OwnAddrs())
	}
	rec, err := h.CheckIn.Run(ctx, t, wire.Ready(), false)
	if errors.Is(err, ErrDone) {
		err = nil
	}
	return rec, err
}

// handOver starts the unit. If another process holds the lock of the check-in, the
// unit waits for it, and continues if it is killed.
func (h Hook) handOver(ctx context.Context, pending unfinished) error {
	limit, cancel := within(ctx, handOverLimit)
	defer cancel()
	bus, err := h.Connect(limit)
	if err == nil {
		err = bus.StartUnit(limit, Unit)
	}
	if errors.Is(pending.checkIn, boot.ErrLocked) {
		h.Log(journal.LockHeld, slog.String("interface", h.Event.Interface))
	}
	if err != nil || pending.held() {
		return err
	}
	attrs := []slog.Attr{slog.String("interface", h.Event.Interface)}
	if rec := pending.record; pending.checkIn != nil {
		attrs = append(attrs, slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts), slog.String("last_error", rec.LastError))
	}
	if pending.nameservers != nil {
		attrs = append(attrs, slog.Any("error", pending.nameservers))
	}
	h.Log(journal.HandedOver, attrs...)
	return nil
}

// giveUp logs what is pending although the unit does not take over, and returns it.
func (h Hook) giveUp(pending unfinished, unitErr error) error {
	err := pending.nameservers
	if err != nil {
		h.Log(journal.NameserversFailed, slog.String("interface", h.Event.Interface), slog.Any("error", err))
		err = fmt.Errorf("nameservers of %s: %w", h.Event.Interface, err)
	}
	if pending.checkIn != nil && !errors.Is(pending.checkIn, boot.ErrLocked) {
		h.CheckIn.GiveUp(pending.record, pending.record.LastError, slog.Any("hand_over_error", unitErr))
		err = errors.Join(err, fmt.Errorf("check-in: %w", pending.checkIn))
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, fmt.Errorf("hand-over: %w", unitErr))
}
