package wire

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

// loop is one call of Report. Up to two attempts run at a time, because a request
// that hangs must not delay the report by 60 s if the server answers the next one
// in milliseconds, and a server that takes 15 s for each answer must still succeed:
//
//   - If the newest attempt is alone and has had no answer for 3 s, another attempt
//     starts in parallel, which then is the newest. The older one has until its
//     requests' own limit.
//   - If there is an older one and the newest has had no answer for 3 s, it is
//     cancelled, which is a failure like any other. Those after it are given
//     twice as long each time, up to 60 s, until one fails in another way.
//   - When the newest has failed, the next one starts after a pause, whether there
//     is an older one or not. When the older one has failed, nothing starts.
type loop struct {
	r *Reporter
	h Health

	started  time.Time
	heard    time.Time // when a server last answered at all; else started
	attempts int       // started so far
	failures int
	last     error // the last failure

	newest    *flight       // nil while a retry is due
	older     *flight       // nil if the newest is alone
	retryAt   time.Time     // when the retry is due
	patience  time.Duration // after which the newest is cancelled if there is an older one
	middlebox atomic.Bool   // see judge
}

// run is the only goroutine that uses the loop's fields.
func (l *loop) run(ctx context.Context) (Outcome, error) {
	l.started = time.Now()
	l.heard, l.retryAt, l.patience = l.started, l.started, firstPatience
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(time.Until(l.due()))
		var ended *flight
		select {
		case <-ctx.Done():
		case <-timer.C:
			ended = l.act(ctx)
		case _, more := <-l.newest.pending():
			ended = l.hear(l.newest, more)
		case _, more := <-l.older.pending():
			ended = l.hear(l.older, more)
		}
		if ended != nil && l.settle(ended) {
			break
		}
	}
	return l.end(ctx)
}

// due returns when to act if there is no answer before.
func (l *loop) due() time.Time {
	switch {
	case l.newest == nil:
		return l.retryAt
	case l.older == nil:
		return l.newest.asked.Add(firstPatience)
	}
	return l.newest.asked.Add(l.patience)
}

// act performs what is due. It returns the attempt that it ended, if any.
func (l *loop) act(ctx context.Context) *flight {
	switch {
	case l.newest == nil:
		l.newest = l.launch(ctx, nil)
	case l.older == nil:
		l.older, l.newest = l.newest, l.launch(ctx, l.newest)
	default:
		l.newest.stop(noAnswerError(l.patience))
		return l.newest
	}
	return nil
}

// launch starts an attempt. beside is the slow one in progress, nil for a retry.
func (l *loop) launch(ctx context.Context, beside *flight) *flight {
	f := l.r.newFlight(l.next(beside), &l.middlebox)
	f.start(ctx, l.h)
	return f
}

// hear handles an answer. It returns the attempt if it has ended.
func (l *loop) hear(f *flight, more bool) *flight {
	if !more {
		return f
	}
	l.heard = time.Now()
	f.asked = l.heard
	return nil
}

// settle handles an attempt that has ended, and reports whether it was a success.
func (l *loop) settle(f *flight) bool {
	if f.Err == nil {
		return true
	}
	l.failures++
	l.last = f.Err
	if l.r.OnAttempt != nil {
		l.r.OnAttempt(f.Attempt)
	}
	if f == l.older {
		l.older = nil
		return false
	}
	l.newest = nil
	wait := jitter(pause(l.failures, time.Since(l.started)))
	if status, ok := errors.AsType[*StatusError](f.Err); ok {
		wait = max(wait, status.RetryAfter)
	}
	l.retryAt = time.Now().Add(wait)
	if _, ok := errors.AsType[noAnswerError](f.Err); ok {
		l.patience = min(2*l.patience, maxPatience)
	} else {
		l.patience = firstPatience
	}
	return false
}

// end stops the attempts in progress, of which one can have succeeded although ctx
// has ended, and returns Report's result.
func (l *loop) end(ctx context.Context) (Outcome, error) {
	var won *flight
	for _, f := range []*flight{l.older, l.newest} {
		if f == nil {
			continue
		}
		err := f.stop(noAnswerError(time.Since(f.asked)))
		if err == nil {
			won = f
		} else if l.last == nil {
			l.last = err
		}
	}
	if won != nil {
		return Outcome{Attempt: won.Attempt, Attempts: l.attempts}, nil
	}
	err := fmt.Errorf("wire: %s not reported: %w", l.h.State, context.Cause(ctx))
	if l.last != nil {
		err = fmt.Errorf("wire: %s not reported in %s: %w; last failure: %w",
			l.h.State, time.Since(l.started).Round(time.Millisecond), context.Cause(ctx), l.last)
	}
	return Outcome{Attempts: l.attempts}, bounded.Error(err)
}
