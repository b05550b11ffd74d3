package dispatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// sameCause is the time between two journal entries about failed attempts with
// the same cause.
const sameCause = time.Minute

// sending is a health report in progress, and its record.
type sending struct {
	*CheckIn
	target Target
	health wire.Health
	old    boot.CheckIn         // the record before
	rec    boot.CheckIn         // the record now
	before int                  // attempts of earlier runs, and of this one at earlier targets
	final  bool                 // old is final (a forced run), and stays so unless this report is accepted
	logged map[string]time.Time // when a cause was logged last
}

// send reports the health to the target, and to the targets that replace it, until
// one has accepted it or ctx ends. It returns the record.
func (c *CheckIn) send(ctx context.Context, t Target, old boot.CheckIn, h wire.Health, state boot.CheckInState, kind journal.Kind) (boot.CheckIn, error) {
	s := &sending{CheckIn: c, health: h, old: old, before: old.Attempts, final: c.final(old), logged: map[string]time.Time{}}
	s.rec = boot.CheckIn{State: boot.Trying, Attempts: old.Attempts, LastError: old.LastError, StartedAt: old.StartedAt}
	if s.rec.StartedAt.IsZero() {
		s.rec.StartedAt = time.Now()
	}
	if h.Description != "" {
		s.tellHost("") // before there is a network
	}
	for {
		s.aim(t)
		out, next, err := s.report(ctx)
		switch {
		case err == nil:
			s.accepted(out, state, kind)
			return s.rec, nil
		case next.Server.IsValid():
			s.moved(out)
			t = next
		default:
			s.stopped(out, err)
			return s.rec, err
		}
	}
}

// aim changes the target.
func (s *sending) aim(t Target) {
	s.target = t
	s.rec.WireServer, s.rec.Source, s.rec.Interface = t.Server.String(), t.Source, t.Interface
	if t.Why != "" {
		s.Log(journal.Option245Unusable, slog.String("interface", t.Interface),
			slog.String("reason", t.Why), slog.String("wireserver", t.Server.String()))
	}
}

// errMoved ends a report when there is another target.
var errMoved = errors.New("another WireServer address was found")

// report reports to the target until it has accepted the report, ctx ends, or
// another target is delivered, which is then returned.
func (s *sending) report(ctx context.Context) (out wire.Outcome, next Target, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case next = <-s.Targets:
			cancel(errMoved)
		case <-ctx.Done():
		}
	}()
	r := &wire.Reporter{
		Server: s.target.Server, UserAgent: s.UserAgent, Device: s.defaultDevice,
		BeforePost: func() { s.tellHost("") }, OnAttempt: s.attemptFailed,
	}
	if s.target.Source == boot.FromOption245 {
		r.Fallback = wire.DefaultAddr
	}
	out, err = s.Report(ctx, r, s.health)
	cancel(nil)
	<-watched
	return out, next, bounded.Error(err)
}

// attemptFailed writes the failure to the record and for the host, and logs it
// unless the same cause was logged less than sameCause ago.
func (s *sending) attemptFailed(a wire.Attempt) {
	text := bounded.Text(a.Err.Error())
	repeated := s.rec.LastError == text && s.rec.Attempts == s.old.Attempts && untilNextEntry(s.old.UpdatedAt) > 0 // by the run before
	s.rec.Attempts++
	s.answeredBy(a)
	s.rec.LastError = text
	if !s.final {
		s.tellHost(text)
		s.write(&s.rec)
	}
	if last, ok := s.logged[cause(a.Err)]; ok && untilNextEntry(last) > 0 {
		return
	}
	if s.logged[cause(a.Err)] = time.Now(); repeated {
		return
	}
	s.Log(journal.AttemptFailed, slog.String("wireserver", s.rec.WireServer), slog.String("via", s.rec.Via),
		slog.Int("attempts", s.rec.Attempts), slog.String("bound_to", a.Device), slog.String("last_error", text))
}

// moved ends the report to a target that was replaced.
func (s *sending) moved(out wire.Outcome) {
	s.before += out.Attempts
	s.rec.Attempts = s.before
	if !s.final {
		s.tellHost(cmp.Or(s.rec.LastError, errMoved.Error()))
	}
}

// stopped writes the record when ctx has ended.
func (s *sending) stopped(out wire.Outcome, err error) {
	s.rec.Attempts = s.before + out.Attempts // including unanswered ones
	s.rec.LastError = cmp.Or(s.rec.LastError, err.Error())
	if !s.final {
		s.tellHost(err.Error())
		s.write(&s.rec)
	}
}

// accepted records and logs that the report was accepted.
func (s *sending) accepted(out wire.Outcome, state boot.CheckInState, kind journal.Kind) {
	s.tellHost("") // another attempt may have failed since
	s.answeredBy(out.Attempt)
	s.rec.State, s.rec.Attempts, s.rec.LastError = state, s.before+out.Attempts, ""
	s.rec.Initrd = state == boot.Failed && s.Initrd
	s.rec.Incarnation, s.rec.ContainerID, s.rec.InstanceID = out.GoalState.Incarnation, out.GoalState.ContainerID, out.GoalState.InstanceID
	s.write(&s.rec)
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

// tellHost writes the record for the host. While a provisioning failure is
// reported, the reason is that failure, not the result of the report.
func (s *sending) tellHost(reason string) {
	if s.TellHost != nil {
		s.TellHost(cmp.Or(s.health.Description, reason))
	}
}

// write writes the record. The check-in continues if that fails.
func (c *CheckIn) write(rec *boot.CheckIn) {
	rec.UpdatedAt, rec.AfterBootMS = time.Now(), boot.SinceBoot().Milliseconds()
	c.RecordFailed(c.Store.WriteCheckIn(*rec))
}

// untilNextEntry returns the time until the same cause is logged again; zero or
// less if that is now, or if the clock was set back.
func untilNextEntry(said time.Time) time.Duration {
	if since := time.Since(said); since >= 0 {
		return sameCause - since
	}
	return 0
}

// cause returns what identifies failures of the same cause: the status, the
// kernel's error, or the operation ("wire: goal state", "wire: GET ..."). It does
// not contain what a server sent, times, or port numbers.
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
