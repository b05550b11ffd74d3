package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// followPoll is how often a run that follows another one looks at its record.
const followPoll = 100 * time.Millisecond

// CheckIn tells the WireServer, once in a boot, how provisioning went.
type CheckIn struct {
	*Env
	UserAgent string
	Initrd    bool // this is the initrd, not the real root
	// Report sends the health, (*wire.Reporter).Report.
	Report func(context.Context, *wire.Reporter, wire.Health) (wire.Outcome, error)
	// TellHost writes the record that Azure's host reads without a network: "" for
	// success, from each POST of Ready on until that has failed; else why there is
	// none. Concurrent calls occur. Nil: there is no such record.
	TellHost func(reason string)
	// Targets delivers what is to be followed in place of the target that Run was
	// given, see [Relook]. Nil: nothing is.
	Targets <-chan Target
}

// Run checks in as Ready unless that is done, or unless a failure was reported
// in this boot; force does it all the same. It returns the record as it stands
// then. The error is boot.ErrLocked if another run has it in hand; otherwise it
// is why the context ended without success.
func (c *CheckIn) Run(ctx context.Context, t Target, force bool) (boot.CheckIn, error) {
	if rec, done := c.Done(); done && !force {
		return rec, nil // whether or not a run that has done it still holds the lock
	}
	unlock, err := c.lock()
	if err != nil {
		return boot.CheckIn{}, err
	}
	defer unlock()
	rec, done := c.Done() // the holder before us may have done it
	if done && !force {
		return rec, nil
	}
	return c.send(ctx, t, rec, wire.Ready(), boot.Ready, journal.CheckedIn)
}

// Follow is Run that waits for another run: it takes over if that one ends
// without success.
func (c *CheckIn) Follow(ctx context.Context, t Target, force bool) (boot.CheckIn, error) {
	return whileLocked(ctx, func() (boot.CheckIn, error) { return c.Run(ctx, t, force) })
}

// whileLocked tries again until the lock is free or ctx ends.
func whileLocked(ctx context.Context, f func() (boot.CheckIn, error)) (boot.CheckIn, error) {
	for {
		rec, err := f()
		if !errors.Is(err, boot.ErrLocked) {
			return rec, err
		}
		if !wait(ctx, followPoll) {
			return rec, fmt.Errorf("%w, and has not ended: %w; nm-azure-dispatch status says how it stands", err, context.Cause(ctx))
		}
	}
}

// ErrReady says that Ready was reported in this boot: a failure after it would
// contradict what Azure has been told.
var ErrReady = errors.New("this boot has already been reported as ready")

// ErrReported says that a failure was reported in this boot: nothing is sent again.
var ErrReported = errors.New("a failure was already reported to Azure in this boot")

// Fail reports that provisioning failed, and why; from then on no Ready goes out
// in this boot but by force. The error is ErrReady after a Ready, and ErrReported
// after a failure; otherwise it is why the context ended without success.
func (c *CheckIn) Fail(ctx context.Context, t Target, reason string) (boot.CheckIn, error) {
	return whileLocked(ctx, func() (boot.CheckIn, error) {
		unlock, err := c.lock()
		if err != nil {
			return boot.CheckIn{}, err
		}
		defer unlock()
		rec, done := c.Done()
		switch {
		case rec.State == boot.Ready:
			return rec, ErrReady
		case done:
			return rec, ErrReported
		}
		return c.send(ctx, t, rec, wire.ProvisioningFailed(reason), boot.Failed, journal.FailureReported)
	})
}

// lock takes the lock of the check-in. The error is boot.ErrLocked; where there
// is no lock to be had it is as good as taken: at worst Ready is sent twice.
func (c *CheckIn) lock() (unlock func(), err error) {
	unlock, err = c.Store.LockCheckIn()
	if err != nil && !errors.Is(err, boot.ErrLocked) {
		c.RecordFailed(err)
		return func() {}, nil
	}
	return unlock, err
}

// Done returns the record of this boot, and whether nothing is left to do. A
// record that cannot be used counts as none.
func (c *CheckIn) Done() (boot.CheckIn, bool) {
	rec, err := c.Store.CheckIn()
	if err != nil {
		return boot.CheckIn{}, false
	}
	return rec, c.final(rec)
}

// final reports whether nothing follows this record by itself. A failure that
// was reported from the initrd is final there only: that the real root is up is
// proof of a recovery.
func (c *CheckIn) final(rec boot.CheckIn) bool {
	return rec.State == boot.Ready || rec.State == boot.Failed && (c.Initrd || !rec.Initrd)
}

// GiveUp logs that a check-in ended without success, and why.
func (c *CheckIn) GiveUp(rec boot.CheckIn, why string, more ...slog.Attr) {
	c.Log(journal.GivenUp, append([]slog.Attr{
		slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts), slog.String("last_error", why),
	}, more...)...)
}
