// Package kvp reports to Azure's host how provisioning went, without a network:
// in a record in the pool of Hyper-V's key-value pair exchange, which the host
// reads when the health report arrives, or when its time limit is reached.
//
// There is one record per boot, overwritten in place; a record of an earlier boot
// is overwritten too. Nothing is written if hv_kvp_daemon has not created the pool.
package kvp

import (
	"bytes"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
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

// Reporter keeps the record of a boot. Its methods may be called concurrently.
type Reporter struct {
	Path   string    // of the pool, normally Path
	Agent  string    // as in "nm-azure-dispatch/0.1.0"
	BootID string    // "" if it is not known: then every record is of another boot
	Booted time.Time // when this boot began
	VMID   string    // see VMID; "" if it is not known

	mu     sync.Mutex
	waited bool // lockLimit was used up
}

// Report writes the record: provisioning succeeded for an empty reason, and
// else failed for that. The last call counts: call it with the reason after each
// failed attempt, and with "" when Ready is sent. It writes nothing if another
// agent has reported in this boot, or without a pool. If the pool cannot be read,
// locked or written, it does nothing: the report over the network is what counts.
func (r *Reporter) Report(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// No symbolic link is followed, and a FIFO does not block.
	f, err := os.OpenFile(r.Path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || !r.lock(f) {
		return
	}
	if at := r.place(f); at >= 0 {
		record := make([]byte, recordSize)
		copy(record[:keySize-1], reportKey)
		copy(record[keySize:recordSize-1], r.value(reason, time.Now()))
		_, _ = f.WriteAt(record, at)
	}
}

// lock takes both kinds of lock: the daemon's is fcntl's, cloud-init's flock's.
// They end when the file is closed.
func (r *Reporter) lock(f *os.File) bool {
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &whole) == nil {
			return true
		}
		if r.waited || time.Since(start) > lockLimit {
			r.waited = true
			return false
		}
	}
}

// place returns where to write the record: where this boot's is, or one of an
// earlier boot, or else at the end. It returns -1 if nothing is to be written.
func (r *Reporter) place(f *os.File) int64 {
	at, buf := int64(-1), make([]byte, recordSize)
	for next := int64(0); next < maxRecords*recordSize; next += recordSize {
		_, err := f.ReadAt(buf, next)
		if err == io.EOF && at < 0 {
			return next // over what is left of a torn record
		}
		if err != nil {
			return at
		}
		if text(buf[:keySize]) != reportKey {
			continue
		}
		fields := parse(text(buf[keySize:]))
		boot, ours := fields["boot_id"]
		// cloud-init writes fractions of a second and +00:00, azure-init RFC 3339.
		// A report without a time that can be read is of an earlier boot.
		written, err := time.Parse(time.RFC3339Nano, fields["timestamp"])
		switch {
		case ours && r.BootID != "" && boot == r.BootID:
			return next
		case !ours && err == nil && !written.Before(r.Booted):
			return -1 // another agent's of this boot: one report in a boot
		case at < 0:
			at = next
		}
	}
	return at // -1: the pool is full
}

// text is what is in a field, up to the padding.
func text(field []byte) string {
	before, _, _ := bytes.Cut(field, []byte{0})
	return string(before)
}

const (
	reportKey = "PROVISIONING_REPORT"                   // where Azure looks for the report
	helpURL   = "https://aka.ms/linuxprovisioningerror" // where every Linux agent's report of a failure points
)

// value is the report: fields of comma-separated values, with bars for commas,
// named as azure-init and cloud-init name them; boot_id is ours. It has at most 1022
// bytes, which the host is sure to see whole (half of a record's field in UTF-16):
// the reason is bounded, and without double quotes, which would be doubled.
func (r *Reporter) value(reason string, now time.Time) string {
	fields := []string{"result=success"}
	if reason != "" {
		fields = []string{"result=error", "reason=" + strings.ReplaceAll(bounded.Text(reason), `"`, "'")}
	}
	fields = append(fields, "agent="+r.Agent, "boot_id="+r.BootID, "pps_type=None")
	if r.VMID != "" {
		fields = append(fields, "vm_id="+r.VMID)
	}
	fields = append(fields, "timestamp="+now.UTC().Format(time.RFC3339))
	if reason != "" {
		fields = append(fields, "documentation_url="+helpURL)
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = '|'
	_ = w.Write(fields) // to a strings.Builder
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// parse returns the fields of a report by their names, of any agent.
func parse(value string) map[string]string {
	r := csv.NewReader(strings.NewReader(value))
	r.Comma, r.LazyQuotes = '|', true
	record, _ := r.Read() // no report has no fields
	fields := map[string]string{}
	for _, f := range record {
		name, v, _ := strings.Cut(f, "=")
		fields[name] = v
	}
	return fields
}

// VMID returns the ID that Azure knows the virtual machine by, "" if it cannot
// be read: only root can. A machine without EFI (generation 1) shows the first
// three fields of the firmware's UUID in the other byte order. root is the file
// system from / on.
func VMID(root fs.FS) string {
	text, _ := fs.ReadFile(root, "sys/class/dmi/id/product_uuid")
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(b) != 16 {
		return ""
	}
	if _, err := fs.Stat(root, "sys/firmware/efi"); err != nil {
		slices.Reverse(b[:4])
		slices.Reverse(b[4:6])
		slices.Reverse(b[6:8])
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
