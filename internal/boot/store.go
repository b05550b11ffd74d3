// Package boot stores the state of the current boot: its ID, the record of the
// check-in, a record per link, and the locks that serialize runs.
//
// The records are files in a directory owned by root (normally
// /run/nm-azure-dispatch), replaced by rename and readable by all users. The locks
// are readable by root only, because a file that can be opened can be locked. A
// record that is truncated, from another boot, owned by another user, or not a
// regular file is ignored: at worst Ready is sent twice, which is harmless.
package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CheckInState is the state of the check-in of a boot.
type CheckInState string

// The states of a check-in.
const (
	Trying CheckInState = "trying"
	Ready  CheckInState = "ready"
	Failed CheckInState = "failed" // ProvisioningFailed was reported: no automatic Ready in this boot
)

// Source is the source of the WireServer's address.
type Source string

// The sources of the address.
const (
	FromOption245 Source = "option-245"
	FromConstant  Source = "constant"
	FromOperator  Source = "operator"
)

// CheckIn is the record of a boot's check-in, check-in.json.
type CheckIn struct {
	BootID      string       `json:"boot_id"`
	State       CheckInState `json:"state"`
	WireServer  string       `json:"wireserver"`
	Source      Source       `json:"source"`
	Via         string       `json:"via"`         // "health" or "provisioning-health"
	Interface   string       `json:"interface"`   // whose lease it was; "" if none
	Incarnation string       `json:"incarnation"` // of the goal state; "" via provisioning-health
	ContainerID string       `json:"container_id"`
	InstanceID  string       `json:"instance_id"`
	Attempts    int          `json:"attempts"` // in this boot, by all processes
	LastError   string       `json:"last_error"`
	StartedAt   time.Time    `json:"started_at"`
	UpdatedAt   time.Time    `json:"updated_at"`
	AfterBootMS int64        `json:"after_boot_ms"` // of the last update, CLOCK_BOOTTIME
	// Initrd is set if the failure was reported from the initrd. The real root,
	// which is started only after a recovery, still checks in.
	Initrd bool `json:"initrd,omitempty"`
}

// LinkState is what this program has done for a link.
type LinkState string

// The states of a link.
const (
	Pushed LinkState = "pushed" // resolved has nameservers that this program configured
	Left   LinkState = "left"   // not changed although it lacks nameservers; Reason says why
	None   LinkState = "none"   // nothing is configured, and nothing to report
)

// Link is the record of a link, links/<ifindex>.json.
type Link struct {
	BootID      string       `json:"boot_id"`
	Interface   string       `json:"interface"`
	State       LinkState    `json:"state"`
	Reason      string       `json:"reason"`
	Nameservers []netip.Addr `json:"nameservers"` // what we pushed
	Domains     []string     `json:"domains"`     // what we pushed; empty if the link had its own
	UpdatedAt   time.Time    `json:"updated_at"`
}

// Names in the directory, which never change.
const (
	checkInFile = "check-in.json"
	checkInLock = "check-in.lock"
	linksDir    = "links"
)

// Store keeps the records of one boot and the locks that go with them.
type Store struct {
	Dir    string // the directory, an absolute path
	BootID string // "" if it is not known: then no record is of this boot
}

// CheckIn returns the record of the check-in. The error is fs.ErrNotExist if
// there is none of this boot.
func (s Store) CheckIn() (CheckIn, error) {
	var rec CheckIn
	if err := s.read(checkInFile, &rec, &rec.BootID); err != nil {
		return CheckIn{}, err
	}
	switch rec.State {
	case Trying, Ready, Failed:
		return rec, nil
	}
	return CheckIn{}, fmt.Errorf("boot: %s: state %.32q, want trying, ready or failed", s.path(checkInFile), rec.State)
}

// WriteCheckIn writes the record of the check-in, as one of this boot. The caller
// holds its lock, unless there can be none.
func (s Store) WriteCheckIn(rec CheckIn) error {
	rec.BootID = s.BootID
	return s.write(checkInFile, rec)
}

// Link returns the record of a link. The error is fs.ErrNotExist if there is
// none of this boot and the interface of this name: an index can be reused for
// another interface.
func (s Store) Link(ifindex int, iface string) (Link, error) {
	name := linkFile(ifindex)
	var rec Link
	if err := s.read(name, &rec, &rec.BootID); err != nil {
		return Link{}, err
	}
	if rec.Interface != iface {
		return Link{}, fmt.Errorf("boot: %s: of interface %.16q: %w", s.path(name), rec.Interface, fs.ErrNotExist)
	}
	return rec, nil
}

// WriteLink writes the record of a link, as one of this boot. The caller holds
// the link's lock.
func (s Store) WriteLink(ifindex int, rec Link) error {
	rec.BootID = s.BootID
	return s.write(linkFile(ifindex), rec)
}

// Links returns the records of this boot, by index.
func (s Store) Links() map[int]Link {
	links := map[int]Link{}
	entries, _ := os.ReadDir(s.path(linksDir))
	for _, e := range entries {
		name, isRecord := strings.CutSuffix(e.Name(), ".json")
		ifindex, err := strconv.Atoi(name)
		var rec Link
		if isRecord && err == nil && s.read(linkFile(ifindex), &rec, &rec.BootID) == nil {
			links[ifindex] = rec
		}
	}
	return links
}

// RemoveGone removes the files of links that no longer exist.
func (s Store) RemoveGone(exists func(ifindex int) bool) (err error) {
	entries, _ := os.ReadDir(s.path(linksDir))
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		if ifindex, notNumber := strconv.Atoi(name); notNumber != nil || exists(ifindex) {
			continue
		}
		failed := os.Remove(s.path(path.Join(linksDir, e.Name())))
		if !errors.Is(failed, fs.ErrNotExist) { // otherwise another run was faster
			err = errors.Join(err, failed)
		}
	}
	return err
}

func linkFile(ifindex int) string { return path.Join(linksDir, strconv.Itoa(ifindex)+".json") }

func (s Store) path(name string) string { return path.Join(s.Dir, name) }

// idPath is the kernel's boot ID, random(4), relative to /.
const idPath = "proc/sys/kernel/random/boot_id"

// ID returns the boot ID, a lower-case UUID that is new at each boot. root is
// the file system from / on.
func ID(root fs.FS) (string, error) {
	b, err := fs.ReadFile(root, idPath)
	if err != nil {
		return "", fmt.Errorf("boot: boot ID: /%s: %w", idPath, errors.Unwrap(err)) // its path lacks the slash
	}
	id := strings.TrimSpace(string(b))
	if len(id) != len("00000000-0000-0000-0000-000000000000") || strings.Trim(id, "0123456789abcdef-") != "" {
		return "", fmt.Errorf("boot: boot ID: /%s holds %.64q, want a UUID", idPath, id)
	}
	return id, nil
}

// SinceBoot returns the time since the machine was started, time in suspend
// included (CLOCK_BOOTTIME, clock_gettime(2)); zero if the kernel cannot tell.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano())
}
