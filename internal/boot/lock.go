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

// lockPoll is how often a bounded wait looks at a lock.
const lockPoll = 10 * time.Millisecond

// LockCheckIn takes the lock of the check-in without waiting. The error is
// ErrLocked if another run holds it; with any other error there is no lock to
// be had (a full or read-only /run), and the caller may go on without. The lock
// ends with unlock or with the process.
func (d Dir) LockCheckIn() (unlock func(), err error) {
	unlock, err = d.lock(checkInLock)
	if err == nil {
		d.sweep(checkInFile)
	}
	return unlock, err
}

// LockLink takes the lock of a link and waits for it until ctx ends. The
// errors are those of LockCheckIn.
func (d Dir) LockLink(ctx context.Context, ifindex int) (unlock func(), err error) {
	for {
		unlock, err = d.tryLink(ifindex)
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

func (d Dir) tryLink(ifindex int) (unlock func(), err error) {
	unlock, err = d.lock(linkLock(ifindex, ".lock"))
	if err == nil {
		d.sweep(linkFile(ifindex))
	}
	return unlock, err
}

func linkLock(ifindex int, suffix string) string {
	return path.Join(linksDir, strconv.Itoa(ifindex)+suffix)
}

// lock opens the file 0600, since anyone who can open a file can flock it.
func (d Dir) lock(name string) (func(), error) {
	if err := d.make(d.path(path.Dir(name))); err != nil {
		return nil, err
	}
	file := d.path(name)
	if err := trusted(file, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("boot: %s: %w", file, ErrLocked)
		}
		return nil, fmt.Errorf("boot: %s: flock: %w", file, err)
	}
	return func() { _ = f.Close() }, nil
}

// sweep removes what a run left that was killed while it wrote the record:
// only the holder of the record's lock writes it.
func (d Dir) sweep(name string) {
	dir, file := path.Split(name)
	entries, _ := os.ReadDir(d.path(dir))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+file) {
			_ = os.Remove(d.path(path.Join(dir, e.Name())))
		}
	}
}
