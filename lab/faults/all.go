package faults

import "time"

// All are all cases, in the order of the tables.
func All() []Case {
	var all []Case
	for _, f := range grid() {
		all = append(all, f.cases()...)
	}
	for _, group := range [][]Case{sequences(), retryAfters(), documents(), networks(), hooks(), environments()} {
		all = append(all, group...)
	}
	return all
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
