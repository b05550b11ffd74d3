package wire

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
)

// Reporter reports a machine's health to a WireServer. Only Server must be set.
// Its methods may be called concurrently.
type Reporter struct {
	// Server is where to report. See [CheckAddr] for option 245's address.
	Server netip.Addr
	// Fallback is tried beside a Server that is slow, and by every second
	// attempt. The zero Addr, or one to which no request can go: there is none.
	Fallback netip.Addr
	// Device returns the device with the default route, or "" for none, and does not
	// block. When no server has answered for 10 s, every second attempt is bound to
	// it, except at a loopback address. Nil: never.
	Device func() string
	// UserAgent goes into the User-Agent header, as in "nm-azure-dispatch/0.1.0".
	UserAgent string
	// OnAttempt, if not nil, is called synchronously after each failed attempt, on
	// the goroutine that called Report, in the order in which they failed.
	OnAttempt func(Attempt)
	// BeforePost, if not nil, is called once when a POST has its connection, before it
	// is sent, on the goroutine of its attempt; two attempts can be under way. It must
	// not block. OnAttempt is called for the same attempt after it has returned.
	BeforePost func()

	dial func(ctx context.Context, device, address string) (net.Conn, error) // for tests: in place of dialTCP
}

// Report reports h and returns once a server has accepted it: with a 2xx status
// and a complete answer that can be the WireServer's; an HTML page cannot. All
// else is retried: other statuses, transport errors, unusable goal states.
//
// Otherwise it returns when ctx ends, or at once if no request can be sent to
// Server. The error wraps [context.Cause] of ctx and the last failure, and the
// Outcome has only the number of attempts. All its goroutines have ended then.
func (r *Reporter) Report(ctx context.Context, h Health) (Outcome, error) {
	if err := CheckTarget(r.Server); err != nil {
		return Outcome{}, err
	}
	return (&loop{r: r, h: h}).run(ctx)
}

// FetchGoalState reads the goal state from Server, once, for diagnosis. The error
// can be a *[StatusError].
func (r *Reporter) FetchGoalState(ctx context.Context) (GoalState, error) {
	if err := CheckTarget(r.Server); err != nil {
		return GoalState{}, err
	}
	f := r.newFlight(Attempt{Server: r.Server}, new(atomic.Bool))
	defer f.transport.CloseIdleConnections()
	err := f.do(ctx, pathGoalState, "", nil)
	return f.GoalState, err
}
