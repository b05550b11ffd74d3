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
	"os"
	"path"
	"strconv"
	"strings"
)

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
		if ifindex, notNumber := strconv.Atoi(name); notNumber == nil && !exists(ifindex) {
			err = errors.Join(err, os.Remove(s.path(path.Join(linksDir, e.Name()))))
		}
	}
	return err
}

func linkFile(ifindex int) string { return path.Join(linksDir, strconv.Itoa(ifindex)+".json") }

func (s Store) path(name string) string { return path.Join(s.Dir, name) }

// First reports whether this is the first call with this name since the machine
// started, in any process: the directory is on a temporary file system. If its
// file cannot be created, every call is the first.
func (s Store) First(name string) bool {
	if s.make(s.Dir) != nil {
		return true
	}
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	_ = f.Close()
	return !errors.Is(err, fs.ErrExist)
}
