package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// followPoll is how often a run that follows another one looks at its record.
const followPoll = 100 * time.Millisecond

// sameCause is how long a cause of failed attempts stays said.
const sameCause = time.Minute

// Log writes a journal entry, (*journal.Journal).Log.
type Log func(journal.Kind, ...slog.Attr)

// CheckIn tells the WireServer, once in a boot, how provisioning went.
type CheckIn struct {
	BootID    string // "" if it cannot be read: then nothing is ever done already
	Records   boot.Dir
	UserAgent string
	Initrd    bool // this is the initrd, not the real root
	// Report sends the health, (*wire.Reporter).Report.
	Report func(context.Context, *wire.Reporter, wire.Health) (wire.Outcome, error)
	// DefaultDevice names the device with the default route, "" if none.
	DefaultDevice func() string
	// TellHost tells Azure's host by a way that needs no network how it stands:
	// "" before each report of Ready, else why there is none. Concurrent calls
	// occur. Nil: the host is not told.
	TellHost func(reason string)
	Log      Log

	recordFailedSaid bool
}

// Run checks in as Ready unless that is done, or unless a failure was reported
// in this boot; force does it all the same. It returns the record as it stands
// then. The error is boot.ErrLocked if another run has it in hand; otherwise it
// is why the context ended without success.
func (c *CheckIn) Run(ctx context.Context, t Target, force bool) (boot.CheckIn, error) {
	if rec, done := c.Done(); done && !force {
		return rec, nil
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
	if t.Why != "" {
		c.Log(journal.Option245Unusable, slog.String("interface", t.Interface),
			slog.String("reason", t.Why), slog.String("wireserver", t.Server.String()))
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
var ErrReady = errors.New("in this boot Azure was already told that the VM is ready")

// Fail reports that provisioning failed, and why, unless that is done; from
// then on no Ready goes out in this boot but by force. The error is ErrReady
// after a Ready; otherwise it is why the context ended without success.
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
			return rec, nil
		}
		return c.send(ctx, t, rec, wire.ProvisioningFailed(reason), boot.Failed, journal.FailureReported)
	})
}

// lock takes the lock of the check-in. The error is boot.ErrLocked; where there
// is no lock to be had it is as good as taken: at worst Ready is sent twice.
func (c *CheckIn) lock() (unlock func(), err error) {
	unlock, err = c.Records.LockCheckIn()
	if err != nil && !errors.Is(err, boot.ErrLocked) {
		c.sayRecordFailed(err)
		return func() {}, nil
	}
	return unlock, err
}

// Done returns the record of this boot, and whether nothing is left to do. A
// record that cannot be used counts as none.
func (c *CheckIn) Done() (boot.CheckIn, bool) {
	rec, err := c.Records.CheckIn(c.BootID)
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

// GiveUp says that a check-in ended without success, and why.
func (c *CheckIn) GiveUp(rec boot.CheckIn, err error) {
	c.Log(journal.GivenUp, slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts),
		slog.String("last_error", err.Error()))
}

// send reports the health and keeps the record: what came of it, and after
// every attempt that failed how far it is. What is final already (a forced run)
// stays so, for the record and for the host, unless this one gets through.
func (c *CheckIn) send(ctx context.Context, t Target, old boot.CheckIn, h wire.Health, state boot.CheckInState, kind journal.Kind) (boot.CheckIn, error) {
	rec := boot.CheckIn{
		BootID: c.BootID, State: boot.Trying, WireServer: t.Server.String(), Source: t.Source,
		Interface: t.Interface, Attempts: old.Attempts, LastError: old.LastError, StartedAt: old.StartedAt,
	}
	if rec.StartedAt.IsZero() {
		rec.StartedAt = time.Now()
	}
	final := c.final(old)
	said := map[string]time.Time{}
	r := &wire.Reporter{Server: t.Server, UserAgent: c.UserAgent, Device: c.DefaultDevice}
	if t.Source == boot.FromOption245 {
		r.Fallback = wire.DefaultAddr
	}
	tell := func(why string) {
		if c.TellHost != nil {
			c.TellHost(cmp.Or(h.Description, why))
		}
	}
	if h.Description != "" {
		tell("") // before there is a network
	}
	r.BeforePost = func() { tell("") }
	r.OnAttempt = func(a wire.Attempt) {
		repeated := rec.LastError == a.Err.Error() && rec.Attempts == old.Attempts && sayAgain(old.UpdatedAt) > 0
		rec.Attempts++
		rec.WireServer, rec.Via, rec.LastError = a.Server.String(), string(a.Via), a.Err.Error()
		if rec.Source = t.Source; a.Server != t.Server {
			rec.Source = boot.FromConstant
		}
		if !final {
			c.write(&rec)
		}
		if last, ok := said[cause(a.Err)]; ok && sayAgain(last) > 0 {
			return
		}
		if said[cause(a.Err)] = time.Now(); repeated {
			return // the run before has said it
		}
		c.Log(journal.AttemptFailed, slog.String("wireserver", rec.WireServer), slog.String("via", rec.Via),
			slog.Int("attempts", rec.Attempts), slog.String("bound_to", a.Device), slog.String("last_error", rec.LastError))
		if !final {
			tell(rec.LastError)
		}
	}
	out, err := c.Report(ctx, r, h)
	if err != nil {
		rec.Attempts = old.Attempts + out.Attempts // those that hung to the end too
		if rec.LastError == "" {
			rec.LastError = err.Error()
		}
		if !final {
			tell(err.Error())
			c.write(&rec)
		}
		return rec, err
	}
	tell("") // another attempt may have failed since
	rec.State, rec.Attempts, rec.LastError = state, old.Attempts+out.Attempts, ""
	rec.Initrd = state == boot.Failed && c.Initrd
	rec.WireServer, rec.Via = out.Server.String(), string(out.Via)
	if out.Server != t.Server {
		rec.Source = boot.FromConstant
	}
	rec.Incarnation, rec.ContainerID, rec.InstanceID = out.GoalState.Incarnation, out.GoalState.ContainerID, out.GoalState.InstanceID
	c.write(&rec)
	c.Log(kind, slog.String("wireserver", rec.WireServer), slog.String("source", string(rec.Source)),
		slog.String("via", rec.Via), slog.String("interface", rec.Interface), slog.String("incarnation", rec.Incarnation),
		slog.Int("attempts", rec.Attempts), slog.Int64("after_boot_ms", rec.AfterBootMS), slog.String("reason", h.Description))
	return rec, nil
}

// write keeps the record; one that cannot be kept stops nothing.
func (c *CheckIn) write(rec *boot.CheckIn) {
	rec.UpdatedAt, rec.AfterBootMS = time.Now(), boot.SinceBoot().Milliseconds()
	if err := c.Records.WriteCheckIn(*rec); err != nil {
		c.sayRecordFailed(err)
	}
}

// sayRecordFailed says once a run why there is no record or no lock.
func (c *CheckIn) sayRecordFailed(err error) {
	if !c.recordFailedSaid {
		c.recordFailedSaid = true
		c.Log(journal.RecordFailed, slog.Any("error", err))
	}
}

// sayAgain returns how long what was said then need not be said again; not more
// than zero if it is time, or if the clock was set back.
func sayAgain(said time.Time) time.Duration {
	if since := time.Since(said); since >= 0 {
		return sameCause - since
	}
	return 0
}

// cause is what two failures have in common: the status, the kernel's error, or
// what was tried ("wire: goal state", "wire: GET ..."). What a server sent, how
// long it was waited for, and port numbers are no part of it.
func cause(err error) string {
	if s, ok := errors.AsType[*wire.StatusError](err); ok {
		return "status " + strconv.Itoa(s.Code)
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	what := strings.SplitN(err.Error(), ": ", 3)
	return strings.Join(what[:min(2, len(what))], ": ")
}
