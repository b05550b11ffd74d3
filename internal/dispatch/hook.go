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
	askLimit      = 900 * time.Millisecond // to ask nameservers, before that as nothing is pending then
	leaseLimit    = 700 * time.Millisecond // to read the lease before that, so that there is time for the default address
)

// Unit finishes what the hook could not.
const Unit = "nm-azure-checkin.service"

// Hook handles Env.Event on an Azure VM.
type Hook struct{ *CheckIn }

// pending is what is not done of both tasks, and why.
type pending struct {
	checkIn     error // boot.ErrLocked: another process does it
	record      boot.CheckIn
	nameservers error
}

// Run performs both tasks, in parallel. What is not done after one second, or has
// failed, it hands over to the unit; if that cannot be started, the tasks continue up
// to the Budget. The error is nil if everything is done or handed over.
func (h Hook) Run(ctx context.Context) error {
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
	ctx, cancel := context.WithTimeoutCause(ctx, Budget, fmt.Errorf("not done after %v", Budget))
	defer cancel()
	tasks, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var p pending
	done := make(chan struct{})
	go func() {
		defer close(done)
		p = h.tasks(tasks, l)
	}()
	select {
	case <-done:
		if p.checkIn == nil && p.nameservers == nil {
			return nil
		}
	case <-time.After(handOverAfter):
	}
	unitErr := h.startUnit(ctx)
	if unitErr == nil {
		stop(fmt.Errorf("not done after %v", handOverAfter))
	}
	<-done
	if unitErr == nil {
		h.handedOver(p)
		return nil
	}
	if p.nameservers != nil {
		p.nameservers = h.reconcile(ctx, ctx, l) // a second time, as nothing else will do it
	}
	return h.giveUp(p, unitErr)
}

// tasks runs both tasks until they are done or ctx ends.
func (h Hook) tasks(ctx context.Context, l Link) (p pending) {
	asking, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var wg sync.WaitGroup
	if _, done := h.CheckIn.Done(); !done && h.Event.Action != nm.Down {
		if t, ok := h.target(ctx); ok {
			wg.Go(func() { p.record, p.checkIn = h.CheckIn.Run(ctx, t, wire.Ready(), false) })
		}
	}
	wg.Go(func() { p.nameservers = h.reconcile(ctx, asking, l) })
	wg.Wait()
	if errors.Is(p.checkIn, ErrDone) {
		p.checkIn = nil
	}
	return p
}

// target returns the target of the check-in. If the lease is not that of the primary
// interface there is none: the WireServer may not answer others. If the lease cannot
// be read it is the default address.
func (h Hook) target(ctx context.Context) (t Target, ok bool) {
	_, s, err := h.read(ctx, leaseLimit)
	d, _ := s.Device(h.Event.Interface)
	switch {
	case err != nil:
		return DefaultTarget(h.Event.Interface, "the lease cannot be read: "+err.Error()), true
	case d.Lease == nil || !d.Lease.Primary():
		return Target{}, false
	}
	return TargetOf(d.Interface, *d.Lease, h.OwnAddrs()), true
}

// startUnit starts the unit. If another process holds the lock of the check-in, the
// unit waits for it, and continues if it is killed.
func (h Hook) startUnit(ctx context.Context) error {
	ctx, cancel := within(ctx, handOverLimit)
	defer cancel()
	bus, err := h.Connect(ctx)
	if err != nil {
		return err
	}
	return bus.StartUnit(ctx, Unit)
}

// handedOver logs what the unit continues.
func (h Hook) handedOver(p pending) {
	attrs := []slog.Attr{slog.String("interface", h.Event.Interface)}
	locked := errors.Is(p.checkIn, boot.ErrLocked)
	if locked {
		h.Log(journal.LockHeld, attrs...)
	}
	if p.nameservers == nil && (p.checkIn == nil || locked) {
		return
	}
	if rec := p.record; p.checkIn != nil {
		attrs = append(attrs, slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts), slog.String("last_error", rec.LastError))
	}
	if p.nameservers != nil {
		attrs = append(attrs, slog.Any("error", p.nameservers))
	}
	h.Log(journal.HandedOver, attrs...)
}

// giveUp logs what is pending although the unit does not take over, and returns it.
func (h Hook) giveUp(p pending, unitErr error) error {
	err := p.nameservers
	if err != nil {
		h.Log(journal.NameserversFailed, slog.String("interface", h.Event.Interface), slog.Any("error", err))
		err = fmt.Errorf("nameservers of %s: %w", h.Event.Interface, err)
	}
	if p.checkIn != nil && !errors.Is(p.checkIn, boot.ErrLocked) {
		h.CheckIn.GiveUp(p.record, p.record.LastError, slog.Any("hand_over_error", unitErr))
		err = errors.Join(err, fmt.Errorf("check-in: %w", p.checkIn))
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, fmt.Errorf("hand-over: %w", unitErr))
}
