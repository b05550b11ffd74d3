// Package wiretest is a WireServer that answers as a script says: well, late,
// wrongly, or not at all.
//
// Without a script it does what is known of the real one: it serves a goal state,
// accepts a health report for exactly that goal state, and refuses others as the
// host does. A [Script] changes single answers. It is plain data, so that a
// server in another process, or in another network namespace, plays the same
// faults as one in a test.
//
// The server works on connections, not on net/http's server, because most of its
// faults are none that net/http would let a handler commit.
package wiretest

import (
	"maps"
	"strings"
	"time"
)

// Script says how a [Server] differs from a well-behaved one. The zero value
// does not differ. Each endpoint has its own list of steps; a request that finds
// its list used up is answered well.
type Script struct {
	// GoalStates are the ones the server has in turn; Step.Advance advances to the
	// next, the last one stays. None: DefaultGoalState.
	GoalStates []GoalState

	GoalState    []Step // GET /machine/?comp=goalstate
	Health       []Step // POST /machine/?comp=health
	Provisioning []Step // POST /provisioning/health
}

// Step is the answer to one request, or to several. Fields that are not set
// leave the answer as it would have been.
type Step struct {
	// Times is how many requests the step answers: 0 means one, and a negative
	// number every one from then on.
	Times int

	Status int // with another status than 2xx the body is empty if none is given
	Header map[string]string
	// Body replaces the body. $INCARNATION, $CONTAINER and $INSTANCE in it stand
	// for the current goal state's values.
	Body *string
	// Foreign says that something else answers in the WireServer's place, so that a
	// report is not accepted, whatever the status.
	Foreign bool
	// Advance has the goal state change once the answer was decided on.
	Advance bool

	Delay         time.Duration // before the first byte
	Trickle       time.Duration // before each byte of the body
	Informational []int         // 1xx answers ahead of the real one
	HTTP10        bool          // HTTP/1.0: no length, closed at the end
	Chunked       bool
	BodyBytes     int  // append filler up to this length
	HeaderBytes   int  // add a header of this length
	Withhold      int  // close with so many bytes of the body unsent
	CloseAfter    bool // close after the answer without having said so

	// Instead of an answer, once the request has been read. The first one counts.
	Hang  bool    // stay silent until the client goes away
	Reset bool    // RST
	Close bool    // FIN
	Raw   *string // these bytes, then FIN
}

// silent reports whether the step gives no HTTP answer.
func (s Step) silent() bool {
	return s.Hang || s.Reset || s.Close || s.Raw != nil
}

// apply changes a good answer into the step's.
func (s Step) apply(a answer, goal GoalState) answer {
	if s.Status != 0 {
		if s.Status/100 != 2 {
			a.body = ""
		}
		a.status = s.Status
	}
	if s.Body != nil {
		a.body = goal.expand(*s.Body)
	}
	a.filler = max(0, s.BodyBytes-len(a.body))
	header := map[string]string{}
	maps.Copy(header, a.header)
	maps.Copy(header, s.Header)
	if s.HeaderBytes > 0 {
		header["X-Filler"] = strings.Repeat(".", s.HeaderBytes)
	}
	a.header = header
	return a
}

// take removes the step for the next request from the list; the zero Step if
// there is none left.
func take(steps *[]Step) Step {
	if len(*steps) == 0 {
		return Step{}
	}
	first := &(*steps)[0]
	step := *first
	if first.Times < 0 {
		return step
	}
	if first.Times--; first.Times <= 0 {
		*steps = (*steps)[1:]
	}
	return step
}
