package faults

import (
	"slices"
	"time"
)

// All are all cases, in the order of the tables: those that take minutes first, for the others to be played beside them.
func All() []Case {
	return slices.Concat(networks(), sequences(), answers(), hooks(), environments())
}

// busy is what a machine that does a dozen other things may add to a time, beyond slack.
const busy = 10 * time.Second

// Quick are the cases that take seconds, with times that fail for what hangs and not for a busy machine: the figures are
// those of All.
func Quick() []Case {
	var quick []Case
	for _, c := range All() {
		if c.Want.Within >= 16*time.Second {
			continue
		}
		c.Want.Within += busy
		if c.Peer != noPeer {
			c.Peer.Took += busy
		}
		quick = append(quick, c)
	}
	return quick
}
