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

// Quick are the cases that take seconds.
func Quick() []Case {
	var quick []Case
	for _, c := range All() {
		if c.Want.Within < 16*time.Second {
			quick = append(quick, c)
		}
	}
	return quick
}
