package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// followPoll is how often a process that waits for another one reads its record.
const followPoll = 100 * time.Millisecond

// CheckIn reports to the WireServer, once per boot, how provisioning ended.
type CheckIn struct {
	*Env
	UserAgent string
	Initrd    bool // this is the initrd, not the real root
	// Report sends the health, (*wire.Reporter).Report.
	Report func(context.Context, *wire.Reporter, wire.Health) (wire.Outcome, error)
	// TellHost writes the record that Azure's host reads without a network. reason
	// is "" (success) while a POST of Ready is under way or once it was accepted, else
	// why the last attempt failed. Nil: there is no such record.
	TellHost func(reason string)
	// NextTarget waits for a target with another server, see [NextTarget]. Nil: there
	// is none.
	NextTarget func(ctx context.Context, current netip.Addr) (Target, bool)
}

// Run reports Ready, unless Ready or a failure was reported in this boot already;
// force reports it in any case. It returns the record of this boot. The error is
// boot.ErrLocked if another process is checking in; otherwise it is why the
// context ended without success.
func (c *CheckIn) Run(ctx context.Context, t Target, force bool) (boot.CheckIn, error) {
	if rec, done := c.Done(); done && !force {
		return rec, nil // also while the process that did it still holds the lock
	}
	unlock, err := c.orWithout(c.Store.LockCheckIn())
	if err != nil {
		return boot.CheckIn{}, err
	}
	defer unlock()
	rec, done := c.Done() // the previous holder of the lock may have done it
	if done && !force {
		return rec, nil
	}
	return c.send(ctx, t, rec, done, wire.Ready())
}

// Follow is like Run, but waits for another process that is checking in, and takes
// over if that one ends without success.
func (c *CheckIn) Follow(ctx context.Context, t Target, force bool) (boot.CheckIn, error) {
	return whileLocked(ctx, func() (boot.CheckIn, error) { return c.Run(ctx, t, force) })
}

// whileLocked calls f again until it gets the lock or ctx ends.
func whileLocked(ctx context.Context, f func() (boot.CheckIn, error)) (boot.CheckIn, error) {
	for {
		rec, err := f()
		if !errors.Is(err, boot.ErrLocked) {
			return rec, err
		}
		if !wait(ctx, followPoll) {
			return rec, fmt.Errorf("%w, and has not ended: %w; see nm-azure-dispatch status", err, context.Cause(ctx))
		}
	}
}

// ErrReady is returned by Fail if Ready was reported in this boot: a failure would
// contradict it.
var ErrReady = errors.New("this boot has already been reported as ready")

// ErrReported is returned by Fail if a failure was reported in this boot already.
var ErrReported = errors.New("a failure was already reported to Azure in this boot")

// Fail reports that provisioning failed, and why. Afterwards Ready is reported in
// this boot only by force. The error is ErrReady after a Ready, ErrReported after
// a failure; otherwise it is why the context ended without success.
func (c *CheckIn) Fail(ctx context.Context, t Target, reason string) (boot.CheckIn, error) {
	return whileLocked(ctx, func() (boot.CheckIn, error) {
		unlock, err := c.orWithout(c.Store.LockCheckIn())
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
		return c.send(ctx, t, rec, false, wire.ProvisioningFailed(reason))
	})
}

// Done returns the record of this boot, and whether only force changes it. A record
// that cannot be read counts as none. A failure that was reported from the initrd is
// final there only: a real root that is up proves a recovery.
func (c *CheckIn) Done() (rec boot.CheckIn, done bool) {
	rec, _ = c.Store.CheckIn()
	return rec, rec.State == boot.Ready || rec.State == boot.Failed && (c.Initrd || !rec.Initrd)
}

// GiveUp logs that a check-in ended without success, and why.
func (c *CheckIn) GiveUp(rec boot.CheckIn, why string, more ...slog.Attr) {
	c.Log(journal.GivenUp, append([]slog.Attr{
		slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts), slog.String("last_error", why),
	}, more...)...)
}
