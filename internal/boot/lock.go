package boot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrLocked says that another run holds the lock.
var ErrLocked = errors.New("another run holds the lock")

// errReplaced says that another run made the file again meanwhile.
var errReplaced = errors.New("other runs replace it all the time")

const (
	lockPoll  = 10 * time.Millisecond // how often a bounded wait looks at a lock
	lockTries = 10                    // to open a lock that others replace
	turnLimit = 2 * time.Second       // how long a run is the only one that waits for a link
)

// LockCheckIn takes the lock of the check-in without waiting. The error is
// ErrLocked if another run holds it; with any other error there is no lock to
// be had (a full or read-only /run), and the caller may go on without. The lock
// ends with unlock or with the process.
func (s Store) LockCheckIn() (unlock func(), err error) { return s.lock(checkInLock, checkInFile) }

// Turn waits for a run's turn at a link, and returns what ends it. Any number of
// runs for the same link can come at once, and what the one that waits finds
// then serves all that came before. So a run that finds another one waiting
// returns at once with ErrLocked. waited says that what was looked at before may
// be out of date. The errors are those of LockCheckIn.
func (s Store) Turn(ctx context.Context, ifindex int) (end func(), waited bool, err error) {
	name := path.Join(linksDir, strconv.Itoa(ifindex))
	take := func() (func(), error) { return s.lock(name+".lock", name+".json") }
	if end, err = take(); !errors.Is(err, ErrLocked) {
		return end, false, err
	}
	next, err := s.lock(name+".next", "")
	if err != nil {
		return nil, false, err
	}
	// Another run may wait from now on, in case it knows of something newer than
	// this one will see; and from turnLimit on in any case, since this run may
	// have no time left when it gets the lock.
	soon, cancel := context.WithTimeout(ctx, turnLimit)
	end, err = poll(soon, take)
	cancel()
	next()
	if errors.Is(err, ErrLocked) {
		end, err = poll(ctx, take)
	}
	return end, true, err
}

// poll takes a lock that another run holds, until ctx ends.
func poll(ctx context.Context, take func() (func(), error)) (func(), error) {
	for {
		end, err := take()
		if !errors.Is(err, ErrLocked) {
			return end, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockPoll):
		}
	}
}

// lock takes a lock, and removes what an interrupted write left of the record
// that it protects.
func (s Store) lock(name, record string) (func(), error) {
	if err := s.make(s.path(path.Dir(name))); err != nil {
		return nil, err
	}
	f, err := openLock(s.path(name))
	for tries := 1; errors.Is(err, errReplaced) && tries < lockTries; tries++ {
		f, err = openLock(s.path(name))
	}
	if err != nil {
		return nil, fmt.Errorf("boot: %s: %w", s.path(name), err)
	}
	if record != "" {
		s.sweep(record)
	}
	return func() { _ = f.Close() }, nil
}

// openLock locks a file with mode 0600, since anyone who can open a file can
// lock it: one that others could open is made again, whoever holds it. Two runs
// that make it again at once can both get a lock: at worst Ready is sent twice.
func openLock(file string) (*os.File, error) {
	fi, err := os.Lstat(file)
	if err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o077 != 0 {
		err = os.Remove(file)
	} else if err == nil {
		err = trusted(file, 0)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err == nil {
		err = errReplaced
		opened, _ := f.Stat()
		if now, gone := os.Lstat(file); gone == nil && os.SameFile(opened, now) {
			return f, nil
		}
	}
	_ = f.Close()
	return nil, err
}

// sweep removes what a run left that was killed while it wrote the record: only
// the holder of the record's lock writes it.
func (s Store) sweep(name string) {
	dir, file := path.Split(name)
	entries, _ := os.ReadDir(s.path(dir))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+file) {
			_ = os.Remove(s.path(path.Join(dir, e.Name())))
		}
	}
}
