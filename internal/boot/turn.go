package boot

import (
	"context"
	"errors"
	"time"
)

// turnLimit is how long a run is the only one that waits.
const turnLimit = 2 * time.Second

// Turn is a run's turn at a link: it has the link's lock, or it is the one run
// that waits for it. Any number of runs for the same link can come at once, and
// what one of them does serves all that have come before it looks; so a third
// one need not stay. The nil Turn is that of a run that could not have a lock.
type Turn struct {
	dir     Dir
	ifindex int
	unlock  func() // nil: it waits
	step    func() // lets another one wait; nil: it does not
}

// LinkTurn returns a turn at a link, without waiting. The error is ErrLocked if
// another run waits already: it will look after this moment. With any other
// error there is no lock to be had.
func (d Dir) LinkTurn(ifindex int) (*Turn, error) {
	unlock, err := d.tryLink(ifindex)
	if err == nil {
		return &Turn{dir: d, ifindex: ifindex, unlock: unlock}, nil
	}
	if !errors.Is(err, ErrLocked) {
		return nil, err
	}
	step, err := d.lock(linkLock(ifindex, ".next"))
	if err != nil {
		return nil, err
	}
	return &Turn{dir: d, ifindex: ifindex, step: step}, nil
}

// Begin waits for the lock until ctx ends. It reports whether there was any
// waiting to do: then what was looked at before Begin may be out of date. The
// errors are those of LockCheckIn.
func (t *Turn) Begin(ctx context.Context) (waited bool, err error) {
	if t == nil || t.step == nil {
		return false, nil
	}
	soon, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	t.unlock, err = t.dir.LockLink(soon, t.ifindex)
	// Before the caller looks: who comes from now on may know of something newer.
	// And after turnLimit in any case: this run may have no time left when it gets
	// the lock, so it must not keep others from waiting too.
	t.step()
	t.step = nil
	if errors.Is(err, ErrLocked) {
		t.unlock, err = t.dir.LockLink(ctx, t.ifindex)
	}
	return true, err
}

// End gives up the lock, or the waiting for it. It may be called twice.
func (t *Turn) End() {
	if t == nil {
		return
	}
	for _, f := range []*func(){&t.unlock, &t.step} {
		if *f != nil {
			(*f)()
			*f = nil
		}
	}
}
