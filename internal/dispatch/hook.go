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
)

// Budget is how long the hook may take in all, where nothing can take over: a
// dispatcher script holds back the activation of other devices, even one in
// no-wait.d.
const Budget = 5 * time.Second

const (
	handOverAfter = time.Second            // what is not done then is for the unit
	handOverLimit = 250 * time.Millisecond // to start the unit
	leaseShare    = 0.7                    // of the time, to connect to the bus and read the lease
)

// Unit finishes what the hook could not.
const Unit = "nm-azure-checkin.service"

// Hook handles one event of a machine that is Azure.
type Hook struct {
	*Env
	Event   nm.Event
	CheckIn *CheckIn
}

// answer is what was read about the link, for both jobs.
type answer struct {
	bus *Bus // nil if it cannot be reached
	dev nm.Device
	err error
}

// unfinished is what is left to be done of both jobs.
type unfinished struct {
	checkIn     error // boot.ErrLocked: another run is at it
	record      boot.CheckIn
	nameservers error
	read        answer // what was read about the link so far
}

// errNotBegun says that a job is to be done.
var errNotBegun = errors.New("not begun")

// Run does both jobs side by side, neither waiting for the other nor spoiled by
// it. What is not done after a second it hands over to the unit; only where
// nothing can take over it goes on, and returns within the Budget if what it
// calls keeps to its context. The error is nil if all is done, handed over, or
// nothing was to be done.
func (h *Hook) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Budget, fmt.Errorf("not done after %v", Budget))
	defer cancel()
	l := Link{Name: h.Event.Interface}
	var err error
	if l.Index, err = h.Index(l.Name); err != nil {
		h.RecordFailed(h.Store.RemoveGone(h.Exists)) // what was pushed went with the link
		return nil
	}
	if h.Event.Action == nm.Down || h.Event.Action == nm.Up && !h.Event.DHCP4 {
		// Down, or a static profile, or IPv6 was faster: then dhcp4-change follows.
		if rec, err := h.Store.Link(l.Index, l.Name); err != nil || rec.State != boot.Pushed {
			return nil
		}
	}
	soon, cancelSoon := context.WithTimeoutCause(ctx, handOverAfter, fmt.Errorf("not done after %v", handOverAfter))
	defer cancelSoon()
	left := unfinished{nameservers: errNotBegun}
	if h.Event.Action != nm.Down {
		left.checkIn = errNotBegun
	}
	left = h.jobs(ctx, soon, l, left)
	if left.checkIn == nil && left.nameservers == nil {
		return nil
	}
	unitErr := h.handOver(ctx, left)
	if unitErr == nil || left.held() {
		return nil
	}
	return h.giveUp(h.jobs(ctx, ctx, l, left), unitErr)
}

// held reports whether all that is left is a check-in that another run is at,
// which goes on with it.
func (u unfinished) held() bool {
	return u.nameservers == nil && errors.Is(u.checkIn, boot.ErrLocked)
}

// jobs does what is left of both jobs until limit ends. ctx is for the
// connection.
func (h *Hook) jobs(ctx, limit context.Context, l Link, todo unfinished) (left unfinished) {
	deadline, _ := limit.Deadline()
	share := time.Duration(leaseShare * float64(time.Until(deadline))).Round(100 * time.Millisecond)
	read := func() (a answer) {
		soon, cancel := context.WithTimeoutCause(limit, share, fmt.Errorf("no answer within %v", share))
		defer cancel()
		if a.bus, a.err = h.Connect(ctx, soon); a.err == nil && h.Event.Action != nm.Down {
			a.dev, a.err = a.bus.Device(soon, l.Name)
		}
		return a
	}
	var once sync.Once
	var shared answer
	done := make(chan struct{})
	first := func() answer {
		once.Do(func() {
			go func() {
				shared = read()
				close(done)
			}()
		})
		<-done
		return shared
	}
	n := &Nameservers{Env: h.Env, Event: h.Event}
	var wg sync.WaitGroup
	if todo.nameservers != nil {
		wg.Go(func() { left.nameservers = n.reconcile(limit, l, first, read) })
	}
	if todo.checkIn != nil {
		wg.Go(func() {
			left.record, left.checkIn = h.checkIn(limit, func() answer {
				if todo.read.bus != nil && todo.read.err == nil {
					return todo.read // by now NetworkManager may be gone
				}
				return first()
			})
		})
	}
	wg.Wait()
	left.read = shared
	return left
}

// checkIn starts only from the lease of the primary interface: the WireServer
// need not answer another one. If the lease cannot be read at all, that is no
// reason to leave the VM unreported: the default address serves every region.
func (h *Hook) checkIn(ctx context.Context, read func() answer) (boot.CheckIn, error) {
	if rec, done := h.CheckIn.Done(); done {
		return rec, nil
	}
	a := read()
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
	return h.CheckIn.Run(ctx, t, false)
}

// handOver starts the unit. It follows a check-in that another run is at, so
// that somebody goes on if that run is killed.
func (h *Hook) handOver(ctx context.Context, left unfinished) error {
	limit, cancel := context.WithTimeoutCause(ctx, handOverLimit, fmt.Errorf("no answer within %v", handOverLimit))
	defer cancel()
	bus, err := h.Connect(ctx, limit)
	if err == nil {
		err = bus.StartUnit(limit, Unit)
	}
	if errors.Is(left.checkIn, boot.ErrLocked) {
		h.Log(journal.LockHeld, slog.String("interface", h.Event.Interface))
	}
	if err != nil || left.held() {
		return err
	}
	attrs := []slog.Attr{slog.String("interface", h.Event.Interface)}
	if rec := left.record; left.checkIn != nil {
		attrs = append(attrs, slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts), slog.String("last_error", rec.LastError))
	}
	if left.nameservers != nil {
		attrs = append(attrs, slog.Any("error", left.nameservers))
	}
	h.Log(journal.HandedOver, attrs...)
	return nil
}

// giveUp logs what is not done and that nothing takes over.
func (h *Hook) giveUp(left unfinished, unitErr error) error {
	err := left.nameservers
	if err != nil {
		h.Log(journal.NameserversFailed, slog.String("interface", h.Event.Interface), slog.Any("error", err))
		err = fmt.Errorf("nameservers of %s: %w", h.Event.Interface, err)
	}
	if left.checkIn != nil && !errors.Is(left.checkIn, boot.ErrLocked) {
		h.CheckIn.GiveUp(left.record, left.record.LastError, slog.Any("hand_over_error", unitErr))
		err = errors.Join(err, fmt.Errorf("check-in: %w", left.checkIn))
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, fmt.Errorf("hand-over: %w", unitErr))
}
