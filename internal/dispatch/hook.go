package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// Budget is how long the hook may take in all: a dispatcher script holds back
// the activation of other devices, even one in no-wait.d.
const Budget = 5 * time.Second

const (
	leaseLimit = 2 * time.Second        // to connect to the bus and read the lease
	handOver   = 500 * time.Millisecond // what of the budget is kept for handing over
)

// Unit goes on with a check-in that the hook could not finish.
const Unit = "nm-azure-checkin.service"

// Bus is what can be asked over the system bus, and of the nameservers.
type Bus struct {
	Device         func(ctx context.Context, iface string) (nm.Device, error)
	Wish           func(ctx context.Context, iface string) (nm.DNSConfig, error)
	Entry          func(ctx context.Context, iface string) (nm.DNSConfig, error) // the wish, unless NetworkManager has lost it
	LinkState      func(ctx context.Context, ifindex int) (resolv.State, error)
	SetNameservers func(ctx context.Context, ifindex int, servers []netip.Addr) error
	SetDomains     func(ctx context.Context, ifindex int, domains []string) error
	FlushCaches    func(ctx context.Context) error
	Probe          func(ctx context.Context, server netip.Addr) (resolv.Answer, error)
	StartUnit      func(ctx context.Context, unit string) error
}

// Hook handles one event of a machine that is Azure.
type Hook struct {
	Event       nm.Event
	CheckIn     *CheckIn
	Nameservers *Nameservers
	// Connect opens the bus before limit ends, and closes it when ctx ends. It
	// is not called where nothing is to be done.
	Connect func(ctx, limit context.Context) (*Bus, error)
	// Index returns the index of the event's interface, an error if it is gone.
	Index func() (int, error)
	// DefaultRoutes names the interfaces with an IPv4 default route.
	DefaultRoutes func() []string
	Log           Log
}

// Run does both jobs side by side, neither waiting for the other nor spoiled by
// it, and returns within the Budget if what it calls keeps to its context. The
// error is nil if all is done, handed over, or nothing was to be done.
func (h *Hook) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Budget, fmt.Errorf("not done after %v", Budget))
	defer cancel()
	if h.Event.Action == nm.Down {
		return h.down(ctx)
	}
	l := Link{Name: h.Event.Interface}
	var err error
	if l.Index, err = h.Index(); err != nil {
		return nil //nolint:nilerr // the device is gone, and its own down event follows
	}
	if h.Event.Action == nm.Up && !h.Event.DHCP4 && !h.pushed(l) {
		return nil // a static profile, or IPv6 was faster: then dhcp4-change follows
	}

	turn, left := h.turn(l)
	defer turn.End()
	if _, done := h.CheckIn.Done(); left && done {
		return nil
	}

	limited, cancelLease := context.WithTimeoutCause(ctx, leaseLimit, fmt.Errorf("no answer within %v", leaseLimit))
	defer cancelLease()
	var dev nm.Device
	bus, err := h.Connect(ctx, limited)
	if err == nil {
		dev, err = bus.Device(limited, l.Name)
	}

	var wg sync.WaitGroup
	var checkInErr, nameserverErr error
	wg.Go(func() { checkInErr = h.checkIn(ctx, bus, dev, err) })
	if !left {
		wg.Go(func() { nameserverErr = h.nameservers(ctx, bus, l, turn, dev, err) })
	}
	wg.Wait()
	return errors.Join(checkInErr, nameserverErr)
}

// turn returns this run's turn at the link, or that its nameservers are left to
// others: to another run that waits already and will see what this one could, or
// to whoever configures the device.
func (h *Hook) turn(l Link) (turn *boot.Turn, left bool) {
	if h.Event.External {
		return nil, true
	}
	turn, err := h.Nameservers.Records.LinkTurn(l.Index)
	if errors.Is(err, boot.ErrLocked) {
		return nil, true
	}
	if err != nil {
		h.Log(journal.RecordFailed, slog.Any("error", err)) // and go on: nobody can be in the way
	}
	return turn, false
}

// checkIn starts only from the lease of the primary interface: the WireServer
// need not answer another one. If the lease cannot be read at all, that is no
// reason to leave the VM unreported: the constant serves every region.
func (h *Hook) checkIn(ctx context.Context, bus *Bus, dev nm.Device, leaseErr error) error {
	var t Target
	switch {
	case errors.Is(leaseErr, nm.ErrNoDevice):
		return nil
	case leaseErr != nil:
		t = DefaultTarget(h.Event.Interface, "the lease cannot be read: "+leaseErr.Error())
	case dev.Lease == nil || !dev.Lease.Primary():
		return nil
	default:
		t = TargetOf(dev.Interface, *dev.Lease, h.Nameservers.OwnAddrs())
	}
	deadline, _ := ctx.Deadline()
	limited, cancel := context.WithDeadlineCause(ctx, deadline.Add(-handOver), errors.New("the hook's time is up"))
	defer cancel()
	rec, err := h.CheckIn.Run(limited, t, false)
	if err == nil {
		return nil
	}
	if errors.Is(err, boot.ErrLocked) {
		h.Log(journal.LockHeld, slog.String("interface", h.Event.Interface))
		return nil
	}
	attrs := []slog.Attr{
		slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts), slog.String("last_error", rec.LastError),
	}
	var unitErr error
	if bus == nil { // it did not answer at first, seconds ago
		bus, unitErr = h.Connect(ctx, ctx)
	}
	if unitErr == nil {
		unitErr = bus.StartUnit(ctx, Unit)
	}
	if unitErr == nil {
		h.Log(journal.HandedOver, attrs...)
		return nil
	}
	h.Log(journal.GivenUp, append(attrs, slog.String("hand_over_error", unitErr.Error()))...)
	return fmt.Errorf("check-in: %w; hand-over: %w", err, unitErr)
}

// nameservers acts only on an activated device: a first dhcp4-change comes before
// that, and up follows it. A run that had to wait looks again, for itself and for
// those that left it to this one.
func (h *Hook) nameservers(ctx context.Context, bus *Bus, l Link, turn *boot.Turn, dev nm.Device, leaseErr error) error {
	defer turn.End()
	waited, err := turn.Begin(ctx)
	switch {
	case errors.Is(err, boot.ErrLocked):
		return h.nameserverErr(err)
	case err != nil:
		h.Log(journal.RecordFailed, slog.Any("error", err))
	case waited && bus != nil:
		dev, leaseErr = bus.Device(ctx, l.Name)
	}
	switch {
	case errors.Is(leaseErr, nm.ErrNoDevice):
		return nil
	case leaseErr != nil:
		return h.nameserverErr(leaseErr)
	case !dev.Activated:
		return nil
	}
	pushed, err := h.Nameservers.Up(ctx, bus, l, dev.Lease, h.primary(l))
	turn.End()
	h.Nameservers.Probe(ctx, bus, l, pushed)
	return h.nameserverErr(err)
}

// primary reports whether the link has an IPv4 default route.
func (h *Hook) primary(l Link) bool { return slices.Contains(h.DefaultRoutes(), l.Name) }

// down undoes what was pushed. A link that is gone took it along.
func (h *Hook) down(ctx context.Context) error {
	l := Link{Name: h.Event.Interface}
	var err error
	if l.Index, err = h.Index(); err != nil {
		if index, ok := h.Nameservers.Records.FindLink(h.Nameservers.BootID, l.Name); ok {
			return h.Nameservers.Records.RemoveLink(index)
		}
		return nil
	}
	if !h.pushed(l) {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, leaseLimit, fmt.Errorf("no answer within %v", leaseLimit))
	defer cancel()
	bus, err := h.Connect(ctx, limited)
	if err == nil {
		err = h.Nameservers.Down(ctx, bus, l, func() bool { return h.primary(l) })
	}
	return h.nameserverErr(err)
}

// pushed reports whether this boot's record says that the link has something
// from us.
func (h *Hook) pushed(l Link) bool {
	rec, err := h.Nameservers.Records.Link(l.Index, h.Nameservers.BootID, l.Name)
	return err == nil && rec.State == boot.Pushed
}

func (h *Hook) nameserverErr(err error) error {
	if err == nil {
		return nil
	}
	h.Log(journal.NameserversFailed, slog.String("interface", h.Event.Interface), slog.Any("error", err))
	return fmt.Errorf("nameservers of %s: %w", h.Event.Interface, err)
}
