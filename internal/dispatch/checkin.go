package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
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

// sameCause is the time between two journal entries about failed attempts with
// the same cause.
const sameCause = time.Minute

// sending is a health report in progress, and its record.
type sending struct {
	*CheckIn
	target Target
	health wire.Health
	old    boot.CheckIn         // the record before
	final  bool                 // old is final (a forced run), and stays so unless this report is accepted
	rec    boot.CheckIn         // the record now
	logged map[string]time.Time // when a cause was logged last

	mu    sync.Mutex
	posts int // POSTs under way
}

// send reports the health to the target, and to the targets that replace it, until
// one has accepted it or ctx ends. It returns the record.
func (c *CheckIn) send(ctx context.Context, t Target, h wire.Health, old boot.CheckIn, final bool) (boot.CheckIn, error) {
	s := &sending{CheckIn: c, target: t, health: h, old: old, final: final, logged: map[string]time.Time{old.LastError: old.UpdatedAt}}
	s.rec = boot.CheckIn{State: boot.Trying, Attempts: old.Attempts, LastError: old.LastError, StartedAt: old.StartedAt}
	if s.rec.StartedAt.IsZero() {
		s.rec.StartedAt = time.Now()
	}
	if h.Description != "" {
		s.tellHost(0, "") // before there is a network
	}
	for {
		before := s.rec.Attempts
		out, next, err := s.report(ctx)
		s.rec.Attempts = before + out.Attempts // including unanswered ones
		if err == nil {
			s.accepted(out)
			return s.rec, nil
		}
		s.rec.LastError = cmp.Or(s.rec.LastError, err.Error())
		s.failed(-s.posts, err.Error())
		if !next.Server.IsValid() {
			return s.rec, err
		}
		s.target = next
	}
}

// report reports to the target until it has accepted the report, ctx ends, or
// there is another target, which is then returned.
func (s *sending) report(ctx context.Context) (out wire.Outcome, next Target, err error) {
	t := s.target
	s.rec.WireServer, s.rec.Source, s.rec.Interface = t.Server.String(), t.Source, t.Interface
	if t.Why != "" {
		s.Log(journal.Option245Unusable, slog.String("interface", t.Interface),
			slog.String("reason", t.Why), slog.String("wireserver", t.Server.String()))
	}
	r := &wire.Reporter{
		Server: t.Server, UserAgent: s.UserAgent, Device: func() string { return append(s.DefaultRoutes(), "")[0] },
		BeforePost: func() { s.tellHost(1, "") }, OnAttempt: s.attemptFailed,
	}
	if t.Source == boot.FromOption245 {
		r.Fallback = wire.DefaultAddr
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	if s.NextTarget != nil {
		watch.Go(func() {
			if found, ok := s.NextTarget(ctx, t.Server); ok {
				next = found
				cancel(errors.New("another WireServer address was found"))
			}
		})
	}
	out, err = s.Report(ctx, r, s.health)
	cancel(nil)
	watch.Wait()
	return out, next, bounded.Error(err)
}

// attemptFailed records the failure of an attempt, and logs it unless the same cause
// was logged less than sameCause ago, or the run before ended with it.
func (s *sending) attemptFailed(a wire.Attempt) {
	s.rec.Attempts++
	s.answeredBy(a)
	s.rec.LastError = bounded.Text(a.Err.Error())
	ended := 0
	if a.Posted {
		ended = -1
	}
	s.failed(ended, s.rec.LastError)
	if recent(s.logged[cause(a.Err)]) || recent(s.logged[s.rec.LastError]) {
		return
	}
	s.logged[cause(a.Err)] = time.Now()
	s.Log(journal.AttemptFailed, slog.String("wireserver", s.rec.WireServer), slog.String("via", s.rec.Via),
		slog.Int("attempts", s.rec.Attempts), slog.String("bound_to", a.Device), slog.String("last_error", s.rec.LastError))
}

// failed writes the record and that for the host. posts is the change of the number
// of POSTs under way.
func (s *sending) failed(posts int, reason string) {
	s.tellHost(posts, reason)
	if !s.final {
		s.write()
	}
}

// accepted records and logs that the report was accepted.
func (s *sending) accepted(out wire.Outcome) {
	kind := journal.CheckedIn
	s.rec.State = boot.Ready
	if s.health.State == wire.StateNotReady {
		kind = journal.FailureReported
		s.rec.State, s.rec.Initrd = boot.Failed, s.Initrd
	}
	s.tellHost(-s.posts, "") // another attempt may have failed since
	s.answeredBy(out.Attempt)
	s.rec.LastError = ""
	s.rec.Incarnation, s.rec.ContainerID, s.rec.InstanceID = out.GoalState.Incarnation, out.GoalState.ContainerID, out.GoalState.InstanceID
	s.write()
	s.Log(kind, slog.String("wireserver", s.rec.WireServer), slog.String("source", string(s.rec.Source)),
		slog.String("via", s.rec.Via), slog.String("interface", s.rec.Interface), slog.String("incarnation", s.rec.Incarnation),
		slog.Int("attempts", s.rec.Attempts), slog.Int64("after_boot_ms", s.rec.AfterBootMS), slog.String("reason", s.health.Description))
}

// answeredBy records the server of an attempt: the target, or the default address
// as its fallback.
func (s *sending) answeredBy(a wire.Attempt) {
	s.rec.WireServer, s.rec.Via, s.rec.Source = a.Server.String(), string(a.Via), s.target.Source
	if a.Server != s.target.Server {
		s.rec.Source = boot.FromConstant
	}
}

// tellHost writes the record for the host after a change of the number of POSTs
// under way. While there is one it says success, as the host reads it when a POST
// arrives; of a provisioning failure always that failure.
func (s *sending) tellHost(change int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts += change
	if s.posts > 0 || s.old.State == boot.Ready {
		reason = ""
	}
	if s.TellHost != nil {
		s.TellHost(cmp.Or(s.health.Description, reason))
	}
}

// write writes the record. The check-in continues if that fails.
func (s *sending) write() {
	s.rec.UpdatedAt, s.rec.AfterBootMS = time.Now(), boot.SinceBoot().Milliseconds()
	s.RecordFailed(s.Store.WriteCheckIn(s.rec))
}

// recent reports whether a time is less than sameCause ago, and not in the future,
// as after the clock was set back.
func recent(t time.Time) bool {
	since := time.Since(t)
	return since >= 0 && since < sameCause
}

// cause returns what failures of the same cause have in common: the status, the
// kernel's error, or the operation. It has nothing that a server sent, and no times.
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
