package wire

import (
	"context"
	"time"
)

// flight is an attempt under way. Its goroutine owns GoalState and Err until
// answers is closed; everything else belongs to the loop.
type flight struct {
	Attempt
	asked    time.Time     // when the request was made that is not answered yet
	patience time.Duration // how long after that it is cancelled beside an older one
	answers  chan struct{} // one value for each answered request; closed at the end
	cancel   context.CancelCauseFunc
}

// launch starts the attempt. Only stop cancels it: that of ctx would carry less
// of a reason, and loop stops whatever is under way when ctx ends.
func (r *Reporter) launch(ctx context.Context, a Attempt, h Health, patience time.Duration) *flight {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight{
		Attempt:  a,
		asked:    time.Now(),
		patience: patience,
		answers:  make(chan struct{}, 2), // an attempt makes two requests at most: sending never blocks
		cancel:   cancel,
	}
	s := r.open(a.Server, a.Device, func() { f.answers <- struct{}{} })
	go func() {
		defer close(f.answers)
		defer cancel(nil)
		defer s.close()
		f.GoalState, f.Err = s.report(ctx, a.Via, h)
	}()
	return f
}

// report makes the requests of an attempt.
func (s *session) report(ctx context.Context, via Via, h Health) (GoalState, error) {
	if via == ViaProvisioning {
		return GoalState{}, s.provisioning(ctx, h)
	}
	gs, err := s.goalState(ctx)
	if err != nil {
		return gs, err
	}
	return gs, s.health(ctx, h, gs)
}

// stop ends the attempt, waits for it, and returns its result, which is nil
// after all if an answer overtook the cancellation.
func (f *flight) stop(cause error) error {
	f.cancel(cause)
	for range f.answers {
	}
	return f.Err
}

// next returns the channel of f's answers, or one that never delivers for nil.
func (f *flight) next() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.answers
}
