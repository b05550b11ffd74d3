package faults

import (
	"slices"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// All are all cases, in the order of the tables: those that take minutes first, for the others to be played beside them.
func All() []Case {
	return slices.Concat(networks(), sequences(), answers(), hooks(), environments())
}

// Case is one thing that goes wrong, or two.
type Case struct {
	Name   string // unique
	Group  string // the heading of its table
	Script wiretest.Script
	World  World
	Start  Start
	Want   Want
	Peer   Peer
}

// World is what is wrong around the WireServer, counted from the start of the program.
type World struct {
	Refused time.Duration // nothing listens for so long
	NoRoute time.Duration // there is no route for so long
	Lost    time.Duration // packets to it vanish for so long

	// Option245 is in the lease of a machine with NetworkManager on the bus; "": there is neither. Other is what answers
	// at that address: nil for nobody, so that connections are refused, or vanish if OtherLost.
	Option245 string
	Other     *wiretest.Script
	OtherLost bool
}

// Start is how the program is started. The zero value is check-in for the address of the WireServer, with an empty
// environment and nobody at standard input.
type Start struct {
	Hook    bool          // as the dispatcher does, in place of check-in
	Timeout time.Duration // --timeout; 0: enough
	Env     []string
	Shell   string // a line of sh that starts the program as "$@"; "": none
}

// Want is what must come of a case. The zero value: Ready.
type Want struct {
	Never    bool          // Ready is impossible
	Status   int           // exit status
	Within   time.Duration // exec to exit, by the design, on an idle machine
	Server   string        // that received Ready; "": the default address
	Via      string        // "": either way
	Readys   int           // that a server accepted; 0: one; -1: it depends
	Requests []string      // all of them: get, post, short; nil: not looked at
	Says     string        // a part of standard error
	Mute     bool          // standard error cannot be read, or there is none
	NoHost   bool          // there is no record for Azure's host; else it says error if Never, and success
}

// Peer is the best of the other programs in a case: which is Ready first, and when. The zero value: none was measured in
// this case, or none came to be Ready.
type Peer struct {
	Name string
	Took time.Duration
}

// Result is what came of a case.
type Result struct {
	Status   int // exit status; -1: killed, since it did not end
	Took     time.Duration
	Requests []string
	Readys   int // accepted by a server
	Server   string
	Via      string
	Attempts int   // in the record
	PeakKiB  int64 // peak resident memory
	FDs      int   // open files, the most that were seen
	Stderr   string

	Host       string // "success" or "error", as the record for Azure's host says at the end; "": there is none
	HostUntrue int    // samples in which that was not so
}
