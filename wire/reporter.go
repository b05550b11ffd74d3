package wire

import (
	"context"
	"net/netip"
)

// Via names a way to report health.
type Via string

// The two ways. See the package comment.
const (
	ViaHealth       Via = "health"              // goal state, then POST /machine/?comp=health
	ViaProvisioning Via = "provisioning-health" // POST /provisioning/health
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
	// asked when nothing was heard from a server for 10 s; every second attempt is
	// then bound to it (SO_BINDTODEVICE). It should not block. Nil: never bind.
	Device func() string
	// UserAgent goes into the User-Agent header, as in "nm-azure-dispatch/0.1.0".
	UserAgent string
	// OnAttempt is told every attempt that failed, in the order in which they
	// did, on the goroutine that called Report, which waits for it. Nil: not told.
	OnAttempt func(Attempt)
	// BeforePost is called before each POST, on a goroutine of its attempt, which
	// waits for it; two attempts can be under way. It must not block, as Report
	// cannot return before it has. Nil: not called.
	BeforePost func()

	port uint16   // zero: serverPort. Tests on loopback cannot have that one
	dial dialFunc // nil: dialTCP. Tests of time have no real network
}

// Attempt is one try to report, and why it failed.
type Attempt struct {
	N         int // counted from 1, in the order in which they started
	Server    netip.Addr
	Via       Via
	Device    string    // what it was bound to; "" for nothing
	GoalState GoalState // the zero value if none was read, or needed
	Err       error
}

// Outcome is the result of a Report.
type Outcome struct {
	Attempt      // the one that was accepted; the zero value if none was
	Attempts int // how many were started, the accepted one included
}

// Report reports h and returns once a server has accepted it with a 2xx status.
//
// Everything else is tried again: every other status, every transport error,
// every unusable goal state. The pauses are 250 ms, 500 ms, then a second, after
// five minutes 5 s and after twenty 30 s, give or take a tenth; a server's
// Retry-After is honoured up to 30 s. A request may take 60 s, but one that has no
// answer after 3 s gets a fresh attempt beside it, and the first to get through
// ends the other. From the fourth on, every other attempt takes the short way.
//
// ctx alone ends it. The error then wraps [context.Cause] of ctx and the last
// failure, and the Outcome has nothing but the number of attempts. The one other
// error is a Server to which no request can go, and is returned at once. No
// goroutine of Report's is left when it returns.
func (r *Reporter) Report(ctx context.Context, h Health) (Outcome, error) {
	if err := CheckTarget(r.Server); err != nil {
		return Outcome{}, err
	}
	return newLoop(r, h).run(ctx)
}

// FetchGoalState asks Server for the goal state, once. It reports nothing, and
// is for diagnosis. The error is a *[StatusError], or of the transport, or of
// [ParseGoalState].
func (r *Reporter) FetchGoalState(ctx context.Context) (GoalState, error) {
	if err := CheckTarget(r.Server); err != nil {
		return GoalState{}, err
	}
	s := r.open(r.Server, "", func() {})
	defer s.close()
	return s.goalState(ctx)
}
