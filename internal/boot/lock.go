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

// ErrLocked is returned if another process holds the lock.
var ErrLocked = errors.New("another run holds the lock")

// errReplaced is returned if another process has replaced the file meanwhile.
var errReplaced = errors.New("other runs replace it all the time")

const (
	lockPoll    = 10 * time.Millisecond // between tries of a bounded wait
	lockTries   = 10                    // to open a lock that other processes replace
	waiterLimit = 2 * time.Second       // how long a process is the only one that waits for a link
)

// LockCheckIn takes the lock of the check-in without waiting. The error is
// ErrLocked if another process holds it. After any other error (a full or read-only
// /run) there can be no lock, and the caller may continue without it. The lock is
// released by unlock or when the process ends.
func (s Store) LockCheckIn() (unlock func(), err error) { return s.lock(checkInLock, checkInFile) }

// LockLink takes the lock of a link, and waits for it if no other process is
// waiting already. Otherwise it returns ErrLocked at once with waited false: the
// process that waits will read the state of the link later than the caller could.
// waited reports whether state that was read before the call may be out of date.
// The errors are those of LockCheckIn.
func (s Store) LockLink(ctx context.Context, ifindex int) (end func(), waited bool, err error) {
	name := path.Join(linksDir, strconv.Itoa(ifindex))
	take := func() (func(), error) { return s.lock(name+".lock", name+".json") }
	if end, err = take(); !errors.Is(err, ErrLocked) {
		return end, false, err
	}
	next, err := s.lock(name+".next", "")
	if err != nil {
		return nil, false, err
	}
	// Once this process has the lock, another one may wait, as its event may be
	// newer; after waiterLimit in any case, because this process may have no time
	// left when it gets the lock.
	soon, cancel := context.WithTimeout(ctx, waiterLimit)
	end, err = poll(soon, take)
	cancel()
	next()
	if errors.Is(err, ErrLocked) {
		end, err = poll(ctx, take)
	}
	return end, true, err
}

// poll calls take until it succeeds or ctx ends.
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

// lock takes a lock, and removes temporary files of interrupted writes of the
// record that it protects.
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

// openLock locks a file with mode 0600, because a file that can be opened can be
// locked. A file that other users can open is replaced, even if it is locked. Two
// processes that replace it at once can both get a lock: at worst Ready is sent
// twice.
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

// sweep removes temporary files of processes that were killed while they wrote the
// record. The caller holds the record's lock, so no such file is in use.
func (s Store) sweep(name string) {
	dir, file := path.Split(name)
	entries, _ := os.ReadDir(s.path(dir))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+file) {
			_ = os.Remove(s.path(path.Join(dir, e.Name())))
		}
	}
}
