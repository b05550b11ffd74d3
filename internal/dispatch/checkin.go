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

// ErrDone is returned if this boot has a final report already.
var ErrDone = errors.New("this boot has a report already")

// Done returns the record of this boot, and whether only force changes it. A record
// that cannot be read counts as none. A failure that was reported from the initrd is
// final there only: a real root that is up proves a recovery.
func (c *CheckIn) Done() (rec boot.CheckIn, done bool) {
	rec, _ = c.Store.CheckIn()
	return rec, rec.State == boot.Ready || rec.State == boot.Failed && (c.Initrd || !rec.Initrd)
}

// Run reports the health, and returns the record of this boot. The error is ErrDone
// after a final report, unless force is set, and boot.ErrLocked if another process is
// reporting; otherwise it is why the context ended without success.
func (c *CheckIn) Run(ctx context.Context, t Target, h wire.Health, force bool) (boot.CheckIn, error) {
	if rec, done := c.Done(); done && !force {
		return rec, ErrDone // also while the process that did it still holds the lock
	}
	unlock, err := c.orWithout(c.Store.LockCheckIn())
	if err != nil {
		return boot.CheckIn{}, err
	}
	defer unlock()
	rec, done := c.Done() // the previous holder of the lock may have done it
	if done && !force {
		return rec, ErrDone
	}
	return c.send(ctx, t, h, rec, done)
}

// Follow is like Run, but waits for another process that is reporting, and takes
// over if that one ends without success.
func (c *CheckIn) Follow(ctx context.Context, t Target, h wire.Health, force bool) (boot.CheckIn, error) {
	for {
		rec, err := c.Run(ctx, t, h, force)
		if !errors.Is(err, boot.ErrLocked) {
			return rec, err
		}
		if !wait(ctx, followPoll) {
			return rec, fmt.Errorf("%w, and has not ended: %w; see nm-azure-dispatch status", err, context.Cause(ctx))
		}
	}
}

// GiveUp logs that a report ended without success, and why.
func (c *CheckIn) GiveUp(rec boot.CheckIn, why string, more ...slog.Attr) {
	c.Log(journal.GivenUp, append([]slog.Attr{
		slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts), slog.String("last_error", why),
	}, more...)...)
}
