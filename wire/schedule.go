package wire

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// Via names an endpoint that takes health reports.
type Via string

// The endpoints. See the package comment.
const (
	ViaHealth       Via = "health"              // XML: goal state, then POST /machine/?comp=health
	ViaProvisioning Via = "provisioning-health" // JSON: POST /provisioning/health
)

// Attempt is one try to report, and why it failed.
type Attempt struct {
	N         int // counted from 1, in the order in which they started
	Server    netip.Addr
	Via       Via
	Device    string    // what it was bound to; "" for nothing
	GoalState GoalState // the zero value if none was read, or needed
	Posted    bool      // BeforePost was called for it
	Err       error     // nil for the one that was accepted
}

// Outcome is the result of a Report.
type Outcome struct {
	Attempt      // the one that was accepted; the zero value if none was
	Attempts int // how many were started, the accepted one included
}

// variations are what attempts 1 to 8, 9 to 16 and so on do differently from the
// first one: any four in a row use each endpoint at each address, any eight all
// combinations. See next for when they do not apply.
var variations = [8]struct {
	via             Via
	fallback, bound bool
}{
	{ViaHealth, false, false},
	{ViaProvisioning, true, true},
	{ViaHealth, true, false},
	{ViaProvisioning, false, false},
	{ViaHealth, false, true},
	{ViaProvisioning, true, false},
	{ViaHealth, true, true},
	{ViaProvisioning, false, true},
}

const (
	jsonFrom = 4                // the first attempt at the JSON endpoint
	quiet    = 10 * time.Second // without any answer, before attempts are bound to a device
)

// next returns the next attempt, for launch.
func (l *loop) next(beside *flight) Attempt {
	l.attempts++
	v := variations[(l.attempts-1)%len(variations)]
	a := Attempt{N: l.attempts, Server: l.r.Server, Via: v.via}
	if a.N < jsonFrom {
		a.Via = ViaHealth
	}
	if beside != nil {
		v.fallback = beside.Server == l.r.Server // wherever the slow one is not
	}
	if v.fallback && CheckTarget(l.r.Fallback) == nil {
		a.Server = l.r.Fallback
	}
	if v.bound && !a.Server.IsLoopback() && l.r.Device != nil && time.Since(l.heard) >= quiet {
		a.Device = l.r.Device()
	}
	return a
}

// pause returns how long to wait after a number of failures, at a time after the
// start, before jitter. Most failures of a healthy host pass within a second; an
// update of the host takes minutes; the deployment fails after 20 to 40 minutes, but
// the machine continues running.
func pause(failures int, elapsed time.Duration) time.Duration {
	switch {
	case elapsed >= 20*time.Minute:
		return 30 * time.Second
	case elapsed >= 5*time.Minute:
		return 5 * time.Second
	case failures <= 1:
		return 250 * time.Millisecond
	case failures == 2:
		return 500 * time.Millisecond
	}
	return time.Second
}

// jitter changes d by up to a tenth, so that machines that were started
// together do not send requests at the same time.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

// How long to wait for an answer before another attempt starts. See loop.
const (
	firstPatience = 3 * time.Second
	maxPatience   = requestTimeout
)

const maxRetryAfter = 30 * time.Second // longer values are cut to this

// retryAfter parses the Retry-After header (RFC 9110, 10.2.3). It returns zero if it is
// missing or no number of seconds: a date would depend on the clock, which can be wrong
// this early in a boot.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
