package wire

import (
	"net/netip"
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
	if v.bound && l.r.Device != nil && time.Since(l.heard) >= quiet {
		a.Device = l.r.Device()
	}
	return a
}
