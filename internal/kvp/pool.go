// Package kvp tells Azure's host how provisioning went by a way that needs no
// network: a record in the pool of Hyper-V's key-value pair exchange, which the
// host reads when the health report arrives, or when it has waited in vain.
//
// There is one record in a boot. It says at any time what is true then, so it
// is rewritten in its place when that changes, and so is one that an earlier
// boot has left. Where no hv_kvp_daemon has made the pool there is nobody to
// tell.
package kvp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Path is the pool that a guest writes for its host, of tools/hv/hv_kvp_daemon.c
// in Linux.
const Path = "/var/lib/hyperv/.kvp_pool_1"

// The layout of a pool, include/uapi/linux/hyperv.h and the daemon: records
// without anything between them, key and value padded with zeros.
const (
	keySize    = 512
	valueSize  = 2048
	recordSize = keySize + valueSize
	// maxRecords is what the daemon reads of a pool.
	maxRecords = 1024
)

const (
	// lockLimit bounds all the waiting for the pool's locks together: anyone who
	// can read the file can lock it.
	lockLimit = 250 * time.Millisecond
	lockPoll  = 10 * time.Millisecond
)

// ErrLocked says that somebody else keeps the pool locked.
var ErrLocked = errors.New("kvp: the pool is locked")

// Reporter keeps the record of a boot. Its methods may be called concurrently.
type Reporter struct {
	Path   string    // of the pool, normally Path
	Agent  string    // as in "nm-azure-dispatch/0.1.0"
	BootID string    // "" if it is not known: then every record is of another boot
	Booted time.Time // when this boot began
	// VMID is asked where there is a pool, and left out if it is "" or nil; see
	// VMID.
	VMID func() string

	mu     sync.Mutex
	waited bool // the bounded wait was used up
	told   bool
	reason string
}

// Report writes the record: provisioning succeeded for an empty reason, and
// else failed for that. It writes nothing if the record says so already, or if
// another agent has reported in this boot, or if there is no pool.
func (r *Reporter) Report(reason string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told && r.reason == reason {
		return nil
	}
	// No link is followed, and no FIFO holds the program up.
	f, err := os.OpenFile(r.Path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kvp: %w", err)
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return fmt.Errorf("kvp: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("kvp: %s is no regular file", r.Path)
	}
	if err := r.lock(f); err != nil {
		return err
	}
	if err := r.write(f, reason); err != nil {
		return fmt.Errorf("kvp: %w", err)
	}
	r.told, r.reason = true, reason
	return nil
}

// lock takes both kinds of lock: the daemon's is fcntl's, cloud-init's flock's.
// They end when the file is closed.
func (r *Reporter) lock(f *os.File) error {
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	for start := time.Now(); ; time.Sleep(lockPoll) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole)
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EACCES):
			return fmt.Errorf("kvp: lock: %w", err)
		case r.waited || time.Since(start) > lockLimit:
			r.waited = true
			return ErrLocked
		}
	}
}

// write puts the record where this boot's is, or one of an earlier boot, or
// else at the end.
func (r *Reporter) write(f *os.File, reason string) error {
	at := int64(-1)
	buf := make([]byte, recordSize)
	n := int64(0)
	for ; n < maxRecords; n++ {
		if _, err := f.ReadAt(buf, n*recordSize); err == io.EOF {
			break // what is left of a torn record is overwritten
		} else if err != nil {
			return err
		}
		key, value := text(buf[:keySize]), text(buf[keySize:])
		if key != reportKey {
			continue
		}
		switch {
		case r.own(value):
			if at = n; sameResult(value, reason) {
				return nil
			}
			return r.writeAt(f, at, reason)
		case r.foreign(value):
			return nil // one report in a boot
		case at < 0:
			at = n
		}
	}
	if at < 0 {
		at = n
	}
	if at == maxRecords {
		return fmt.Errorf("the pool is full: %d records", maxRecords)
	}
	return r.writeAt(f, at, reason)
}

func (r *Reporter) writeAt(f *os.File, at int64, reason string) error {
	_, err := f.WriteAt(record(reportKey, r.value(reason, time.Now())), at*recordSize)
	return err
}

func record(key, value string) []byte {
	b := make([]byte, recordSize)
	copy(b[:keySize-1], key)
	copy(b[keySize:recordSize-1], value)
	return b
}

func text(field []byte) string {
	for i, c := range field {
		if c == 0 {
			return string(field[:i])
		}
	}
	return string(field)
}
