// Package kvp reports to Azure's host how provisioning went, without a network:
// in a record in the pool of Hyper-V's key-value pair exchange, which the host
// reads when the health report arrives, or when its time limit is reached.
//
// There is one record per boot, overwritten in place when its result or reason
// changes; a record of an earlier boot is overwritten too. Nothing is written if
// hv_kvp_daemon has not created the pool.
package kvp

import (
	"bytes"
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

// Path is the pool that a guest writes for its host, of Linux's hv_kvp_daemon.
const Path = "/var/lib/hyperv/.kvp_pool_1"

// The layout of a pool, include/uapi/linux/hyperv.h and the daemon: records
// without anything between them, key and value padded with zeros.
const (
	keySize    = 512
	recordSize = keySize + 2048
	maxRecords = 1024 // what the daemon reads
)

// lockLimit bounds the total time of waiting for the pool's locks: any user who can
// read the file can lock it.
const lockLimit = 250 * time.Millisecond

// ErrLocked is returned if another process keeps the pool locked.
var ErrLocked = errors.New("the pool is locked")

// Reporter keeps the record of a boot. Its methods may be called concurrently.
type Reporter struct {
	Path   string        // of the pool, normally Path
	Agent  string        // as in "nm-azure-dispatch/0.1.0"
	BootID string        // "" if it is not known: then every record is of another boot
	Booted time.Time     // when this boot began
	VMID   func() string // called if there is a pool; nil or "" for none. See VMID

	mu     sync.Mutex
	waited bool // lockLimit was used up
	told   bool
	reason string
}

// Report writes the record: provisioning succeeded for an empty reason, and
// else failed for that. The last call counts: call it with the reason after each
// failed attempt, and with "" before Ready is sent. It writes nothing if the record
// says so already, if another agent has reported in this boot, or without a pool.
func (r *Reporter) Report(reason string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told && r.reason == reason {
		return nil
	}
	// No symbolic link is followed, and a FIFO does not block.
	f, err := os.OpenFile(r.Path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer func() { _ = f.Close() }()
		err = r.update(f, reason)
	}
	if err != nil {
		return fmt.Errorf("kvp: %w", err)
	}
	r.told, r.reason = true, reason
	return nil
}

func (r *Reporter) update(f *os.File, reason string) error {
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", r.Path)
	}
	if err := r.lock(f); err != nil {
		return err
	}
	return r.write(f, reason)
}

// lock takes both kinds of lock: the daemon's is fcntl's, cloud-init's flock's.
// They end when the file is closed.
func (r *Reporter) lock(f *os.File) error {
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole)
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EACCES):
			return fmt.Errorf("lock: %w", err)
		case r.waited || time.Since(start) > lockLimit:
			r.waited = true
			return ErrLocked
		}
	}
}

// write puts the record where this boot's is, or one of an earlier boot, or
// else at the end.
func (r *Reporter) write(f *os.File, reason string) error {
	at, buf, n := int64(-1), make([]byte, recordSize), int64(0)
	for ; n < maxRecords; n++ {
		if _, err := f.ReadAt(buf, n*recordSize); err == io.EOF {
			break // what is left of a torn record is overwritten
		} else if err != nil {
			return err
		}
		if text(buf[:keySize]) != reportKey {
			continue
		}
		fields := parse(text(buf[keySize:]))
		boot, ours := fields["boot_id"]
		if ours && r.BootID != "" && boot == r.BootID {
			if at = n; reason == "" && fields["result"] == "success" {
				return nil // an error is written again, as its reason may be another
			}
			break
		}
		// cloud-init writes fractions of a second and +00:00, azure-init RFC 3339.
		// A report without a time that can be read is of an earlier boot.
		written, err := time.Parse(time.RFC3339Nano, fields["timestamp"])
		if !ours && err == nil && !written.Before(r.Booted) {
			return nil // another agent's of this boot: one report in a boot
		}
		if at < 0 {
			at = n
		}
	}
	if at < 0 {
		at = n
	}
	if at == maxRecords {
		return fmt.Errorf("the pool is full: %d records", maxRecords)
	}
	b := make([]byte, recordSize)
	copy(b[:keySize-1], reportKey)
	copy(b[keySize:recordSize-1], r.value(reason, time.Now()))
	_, err := f.WriteAt(b, at*recordSize)
	return err
}

// text is what is in a field, up to the padding.
func text(field []byte) string {
	before, _, _ := bytes.Cut(field, []byte{0})
	return string(before)
}
