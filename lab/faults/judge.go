package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
)

const (
	// slack is what a loaded machine may add to a time; the issue grants as much over the fastest peer.
	slack = time.Second
	// peakLimit is the design's bound of the resident memory, in KiB.
	peakLimit = 12 << 10
	// fdLimit bounds the open files: three standard ones, the runtime's, two connections, lock, record and bus.
	fdLimit = 16
)

// judge says what of a result is not as it must be.
func judge(c Case, r Result) (faults []string) {
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if r.Status != c.Want.Status {
		wrong("exit status %d, want %d", r.Status, c.Want.Status)
	}
	switch want := cmp.Or(c.Want.Readys, 1); {
	case c.Want.Never && r.Readys > 0, !c.Want.Never && r.Readys == 0, want > 0 && r.Readys > want:
		wrong("%d Readys were accepted", r.Readys)
	}
	if limit := c.Want.Within + slack; r.Took > limit {
		wrong("took %v, want at most %v", r.Took, limit)
	}
	// The peers' figures are whole seconds.
	if limit := c.Peer.Took + slack; c.Peer != noPeer && r.Took.Round(time.Second) > limit {
		wrong("took %v, %s takes %v", r.Took, c.Peer.Name, c.Peer.Took)
	}
	if want := cmp.Or(c.Want.Server, constant); !c.Want.Never && r.Server != want {
		wrong("Ready went to %s, want %s", r.Server, want)
	}
	if c.Want.Via != "" && r.Via != c.Want.Via {
		wrong("Ready went by %s, want %s", r.Via, c.Want.Via)
	}
	if c.Want.Requests != nil && !slices.Equal(r.Requests, c.Want.Requests) {
		wrong("requests are %v, want %v", r.Requests, c.Want.Requests)
	}
	if r.PeakKiB > peakLimit {
		wrong("%d KiB of memory, want at most %d", r.PeakKiB, peakLimit)
	}
	if r.FDs > fdLimit {
		wrong("%d open files, want at most %d", r.FDs, fdLimit)
	}
	host := "success"
	switch {
	case c.Want.NoHost:
		host = ""
	case c.Want.Never:
		host = "error"
	}
	if r.Host != host {
		wrong("the host's record says %q at the end, want %q", r.Host, host)
	}
	if r.HostUntrue > 0 {
		wrong("the host's record was untrue in %d samples", r.HostUntrue)
	}
	if c.Want.Mute {
		return faults
	}
	if !strings.Contains(r.Stderr, c.Want.Says) {
		wrong("standard error lacks %q", c.Want.Says)
	}
	// Two attempts may be one that was not answered, and has not failed, and the one beside it. Where the hook can hand over
	// to nobody it starts again after a second: that is one more that has not failed.
	pending := 2
	if c.Start.Hook {
		pending = 3
	}
	if r.Attempts > pending && !strings.Contains(r.Stderr, journal.AttemptFailed.Message) {
		wrong("no entry says that %s", journal.AttemptFailed.Message)
	}
	return faults
}
