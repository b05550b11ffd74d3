package boot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"
)

// ErrLocked is returned if another process holds the lock, and ErrQueued, which wraps
// it, if another process waits for it already.
var (
	ErrLocked = errors.New("another run holds the lock")
	ErrQueued = fmt.Errorf("%w, and another one waits for it", ErrLocked)
)

// lockPoll is the time between tries while waiting for a lock.
const lockPoll = 10 * time.Millisecond

// LockCheckIn takes the lock of the check-in without waiting. The error is
// ErrLocked if another process holds it. After any other error (a full or read-only
// /run) there can be no lock, and the caller may continue without it. The lock is
// released by unlock, which may be called again, or when the process ends.
func (s Store) LockCheckIn() (unlock func(), err error) { return s.lock(checkInLock) }

// LockLink takes the lock of a link, and waits for it until ctx ends if no other
// process is waiting already. Otherwise it returns ErrQueued at once: the process that
// waits will read the state of the link later than the caller could. Apart from that,
// the results are those of LockCheckIn.
func (s Store) LockLink(ctx context.Context, ifindex int) (unlock func(), err error) {
	name := path.Join(linksDir, strconv.Itoa(ifindex))
	if unlock, err = s.lock(name + ".lock"); !errors.Is(err, ErrLocked) {
		return unlock, err
	}
	waiting, err := s.lock(name + ".next")
	if errors.Is(err, ErrLocked) {
		return nil, ErrQueued
	}
	if err != nil {
		return nil, err
	}
	defer waiting() // with the lock: another process may wait, as its event may be newer
	for {
		unlock, err = s.lock(name + ".lock")
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockPoll):
		}
	}
}

// lock locks a file with mode 0600, because a file that can be opened can be locked.
// A file that other users can open is replaced, even if it is locked. Processes that
// replace it at once can both get a lock: at worst Ready is sent twice.
func (s Store) lock(name string) (unlock func(), err error) {
	file := s.path(name)
	if err := s.make(path.Dir(file)); err != nil {
		return nil, err
	}
	if fi, err := os.Lstat(file); err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o077 != 0 {
		_ = os.Remove(file)
	}
	if err := trusted(file, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, fmt.Errorf("boot: %s: %w", file, err)
}
