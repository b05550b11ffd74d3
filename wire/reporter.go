package wire

import (
	"context"
	"net"
	"net/netip"
)

// Reporter reports a machine's health to a WireServer. Only Server must be set.
// A Reporter is not changed by its methods, which may be called concurrently.
type Reporter struct {
	// Server is where to report: option 245's address once it has passed
	// [CheckAddr], or [DefaultAddr], or what the operator named.
	Server netip.Addr
	// Fallback is tried beside a Server that is slow, and by every second
	// attempt. The zero Addr, or one to which no request can go: there is none.
	Fallback netip.Addr
	// Device returns the device with the default route, or "" for none. It is
	// called when no server has answered for 10 s; every second attempt is then
	// bound to it (SO_BINDTODEVICE). It should not block. Nil: never bind.
	Device func() string
	// UserAgent goes into the User-Agent header, as in "nm-azure-dispatch/0.1.0".
	UserAgent string
	// OnAttempt, if not nil, is called synchronously after each failed attempt, on
	// the goroutine that called Report, in the order in which they failed.
	OnAttempt func(Attempt)
	// BeforePost, if not nil, is called before each POST, on a goroutine of its
	// attempt; two attempts can be under way. It must not block. It has returned
	// before OnAttempt is called for the same attempt, and before Report returns.
	BeforePost func()

	// For tests: another port than 80, and a network in memory in place of dialTCP.
	port uint16
	dial func(ctx context.Context, device, address string) (net.Conn, error)
}

// Report reports h and returns once a server has accepted it: with a 2xx status
// and a complete answer that can be the WireServer's; an HTML page cannot.
//
// Everything else is retried: every other status, every transport error, every
// unusable goal state. A server's Retry-After is honoured up to 30 s. A request
// may take 60 s, but one that has no answer after 3 s is followed by another
// attempt in parallel, and the first to be accepted cancels the other.
//
// Otherwise it returns when ctx ends. The error then wraps [context.Cause] of ctx
// and the last failure, and the Outcome has only the number of attempts. If no
// request can be sent to Server, it returns an error at once. All its goroutines
// have ended when it returns.
func (r *Reporter) Report(ctx context.Context, h Health) (Outcome, error) {
	if err := CheckTarget(r.Server); err != nil {
		return Outcome{}, err
	}
	l := &loop{r: r, h: h}
	return l.run(ctx)
}

// FetchGoalState reads the goal state from Server, once, for diagnosis. It reports
// nothing. The error is a *[StatusError], or of the transport, or of
// [ParseGoalState].
func (r *Reporter) FetchGoalState(ctx context.Context) (GoalState, error) {
	if err := CheckTarget(r.Server); err != nil {
		return GoalState{}, err
	}
	s := r.open(r.Server, "", new(suspicion), func() {})
	defer s.close()
	return s.goalState(ctx)
}
