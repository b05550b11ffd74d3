package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// Names in the directory. They are an interface.
const (
	checkInFile = "check-in.json"
	checkInLock = "check-in.lock"
	linksDir    = "links"
)

// maxRecord bounds what is read of a record, in bytes.
const maxRecord = 64 << 10

// Dir is the directory of the records, an absolute path.
type Dir string

// CheckIn returns the record of the check-in. The error is fs.ErrNotExist if
// there is none of the boot with this ID.
func (d Dir) CheckIn(bootID string) (CheckIn, error) {
	var rec CheckIn
	if err := d.read(checkInFile, &rec); err != nil {
		return CheckIn{}, err
	}
	switch rec.State {
	case Trying, Ready, Failed:
	default:
		return CheckIn{}, fmt.Errorf("boot: %s: state %.32q, want trying, ready or failed", d.path(checkInFile), rec.State)
	}
	if err := d.current(checkInFile, rec.BootID, bootID); err != nil {
		return CheckIn{}, err
	}
	return rec, nil
}

// WriteCheckIn writes the record of the check-in. The caller holds its lock,
// unless that could not be had.
func (d Dir) WriteCheckIn(rec CheckIn) error { return d.write(checkInFile, rec) }

// Link returns the record of a link. The error is fs.ErrNotExist if there is
// none of the boot with this ID and the interface of this name: an index can
// come back with another interface.
func (d Dir) Link(ifindex int, bootID, iface string) (Link, error) {
	name := linkFile(ifindex)
	var rec Link
	if err := d.read(name, &rec); err != nil {
		return Link{}, err
	}
	if err := d.current(name, rec.BootID, bootID); err != nil {
		return Link{}, err
	}
	if rec.Interface != iface {
		return Link{}, fmt.Errorf("boot: %s: of interface %.16q: %w", d.path(name), rec.Interface, fs.ErrNotExist)
	}
	return rec, nil
}

// WriteLink writes the record of a link. The caller holds the link's lock.
func (d Dir) WriteLink(ifindex int, rec Link) error { return d.write(linkFile(ifindex), rec) }

// RemoveLink removes the record of a link that is gone.
func (d Dir) RemoveLink(ifindex int) error {
	err := os.Remove(d.path(linkFile(ifindex)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// FindLink returns the index under which an interface is recorded in this
// boot, for an interface that is gone and can no longer be asked for it.
func (d Dir) FindLink(bootID, iface string) (int, bool) {
	entries, _ := os.ReadDir(d.path(linksDir))
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		ifindex, err := strconv.Atoi(name)
		if !ok || err != nil {
			continue
		}
		if _, err := d.Link(ifindex, bootID, iface); err == nil {
			return ifindex, true
		}
	}
	return 0, false
}

func linkFile(ifindex int) string { return path.Join(linksDir, strconv.Itoa(ifindex)+".json") }

func (d Dir) path(name string) string { return path.Join(string(d), name) }

func (d Dir) current(name, have, want string) error {
	if have == "" || have != want {
		return fmt.Errorf("boot: %s: of boot %.36q: %w", d.path(name), have, fs.ErrNotExist)
	}
	return nil
}

// read decodes a record. Only regular files of the directory's own kind of
// owner are read: no link is followed, and no FIFO can hold the program up.
func (d Dir) read(name string, rec any) error {
	if err := trusted(d.path(path.Dir(name)), fs.ModeDir); err != nil {
		return err
	}
	file := d.path(name)
	if err := trusted(file, 0); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if len(b) > maxRecord {
		return fmt.Errorf("boot: %s: longer than %d bytes", file, maxRecord)
	}
	if err := json.Unmarshal(b, rec); err != nil {
		return fmt.Errorf("boot: %s: %w", file, err)
	}
	return nil
}

// write replaces a record by rename, so that a reader sees the old one or the
// new one. What is in the way and no regular file stays, and is the error.
func (d Dir) write(name string, rec any) error {
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("boot: %s: %w", d.path(name), err)
	}
	dir := d.path(path.Dir(name))
	if err := d.make(dir); err != nil {
		return err
	}
	if err := trusted(d.path(name), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = renameio.WriteFile(d.path(name), append(b, '\n'), 0o644,
		renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	return nil
}

// make creates the directory, and the one above it if that is ours too. A
// directory that somebody else could write to is not used.
func (d Dir) make(dir string) error {
	if dir != string(d) {
		if err := d.make(string(d)); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.Chmod(dir, 0o755) // whatever the umask is
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("boot: %w", err)
	}
	return trusted(dir, fs.ModeDir)
}

// trusted checks that a path is of the wanted type (0: a regular file, no link
// followed), that root or this program's user owns it, and that nobody else can
// write to it.
func trusted(name string, want fs.FileMode) error {
	fi, err := os.Lstat(name)
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if fi.Mode().Type() != want {
		return fmt.Errorf("boot: %s is a %v, want a %v: remove it", name, fi.Mode().Type(), want)
	}
	uid := fi.Sys().(*syscall.Stat_t).Uid
	if uid != 0 && int(uid) != os.Geteuid() {
		return fmt.Errorf("boot: %s belongs to user %d, want root: remove it", name, uid)
	}
	if perm := fi.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("boot: %s has mode %04o, others can write to it: remove it", name, perm)
	}
	return nil
}

// First reports whether this is the first call with this name since the machine
// started, in any process: the directory is on a file system that does not
// survive that. Where no mark can be made every call is the first.
func (d Dir) First(name string) bool {
	if d.make(string(d)) != nil {
		return true
	}
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return !errors.Is(err, fs.ErrExist)
	}
	_ = f.Close()
	return true
}
