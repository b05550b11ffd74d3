package dispatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
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
	unlock, err := c.Records.LockCheckIn()
	switch {
	case errors.Is(err, boot.ErrLocked):
		return boot.CheckIn{}, err
	case err != nil:
		c.sayRecordFailed(err) // and go on: at worst Ready is sent twice
	default:
		defer unlock()
	}
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
	for {
		rec, err := c.Run(ctx, t, force)
		if !errors.Is(err, boot.ErrLocked) {
			return rec, err
		}
		if !wait(ctx, followPoll) {
			return rec, err
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
	for {
		unlock, err := c.Records.LockCheckIn()
		if errors.Is(err, boot.ErrLocked) {
			if !wait(ctx, followPoll) {
				return boot.CheckIn{}, err
			}
			continue
		}
		if err != nil {
			c.sayRecordFailed(err)
		} else {
			defer unlock()
		}
		rec, _ := c.Done()
		switch rec.State {
		case boot.Ready:
			return rec, ErrReady
		case boot.Failed:
			return rec, nil
		}
		return c.send(ctx, t, rec, wire.ProvisioningFailed(reason), boot.Failed, journal.FailureReported)
	}
}

// Done returns the record of this boot, and whether nothing is left to do. A
// record that cannot be used counts as none.
func (c *CheckIn) Done() (boot.CheckIn, bool) {
	rec, err := c.Records.CheckIn(c.BootID)
	if err != nil {
		return boot.CheckIn{}, false
	}
	return rec, rec.State == boot.Ready || rec.State == boot.Failed
}

// GiveUp says that a check-in ended without success, and why.
func (c *CheckIn) GiveUp(rec boot.CheckIn, err error) {
	c.Log(journal.GivenUp, slog.String("wireserver", rec.WireServer), slog.Int("attempts", rec.Attempts),
		slog.String("last_error", err.Error()))
}

// send reports the health and keeps the record: what came of it, and after
// every attempt that failed how far it is.
func (c *CheckIn) send(ctx context.Context, t Target, old boot.CheckIn, h wire.Health, state boot.CheckInState, kind journal.Kind) (boot.CheckIn, error) {
	rec := boot.CheckIn{
		BootID: c.BootID, State: boot.Trying, WireServer: t.Server.String(), Source: t.Source,
		Interface: t.Interface, Attempts: old.Attempts, LastError: old.LastError, StartedAt: old.StartedAt,
	}
	if rec.StartedAt.IsZero() {
		rec.StartedAt = time.Now()
	}
	said := map[string]time.Time{}
	r := &wire.Reporter{Server: t.Server, UserAgent: c.UserAgent, Device: c.DefaultDevice}
	if t.Source == boot.FromOption245 {
		r.Fallback = wire.Constant
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
		rec.Attempts++
		rec.WireServer, rec.Via, rec.LastError = a.Server.String(), string(a.Via), a.Err.Error()
		c.write(&rec)
		if last, ok := said[cause(a.Err)]; ok && time.Since(last) < sameCause {
			return
		}
		said[cause(a.Err)] = time.Now()
		c.Log(journal.AttemptFailed, slog.String("wireserver", rec.WireServer), slog.String("via", rec.Via),
			slog.Int("attempts", rec.Attempts), slog.String("bound_to", a.Device), slog.String("last_error", rec.LastError))
		tell(rec.LastError)
	}
	out, err := c.Report(ctx, r, h)
	if err != nil {
		tell(err.Error())
		rec.Attempts = old.Attempts + out.Attempts // those that hung to the end too
		if rec.LastError == "" {
			rec.LastError = err.Error()
		}
		c.write(&rec)
		return rec, err
	}
	tell("") // another attempt may have failed since
	rec.State, rec.Attempts, rec.LastError = state, old.Attempts+out.Attempts, ""
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

// cause is what two failures have in common: the status, or the innermost
// error, which has no port numbers in it.
func cause(err error) string {
	if s, ok := errors.AsType[*wire.StatusError](err); ok {
		return "status " + strconv.Itoa(s.Code)
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
