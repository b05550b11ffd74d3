package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
)

const (
	locksFile = "proc/locks"
	lockName  = "check-in.lock" // of the package boot
)

// readRecords reads the records of this boot.
func readRecords(root fs.FS, dir string, links []Link) Records {
	r := Records{Links: map[string]Seen[boot.Link]{}, Holder: holder(root, path.Join(dir, lockName))}
	r.BootID, r.BootErr = boot.ID(root)
	store := boot.Store{Dir: dir, BootID: r.BootID}
	r.CheckIn.V, r.CheckIn.Err = store.CheckIn()
	for _, l := range links {
		if rec, err := store.Link(l.Index, l.Name); !errors.Is(err, fs.ErrNotExist) {
			r.Links[l.Name] = Seen[boot.Link]{rec, err}
		}
	}
	return r
}

// holder returns the process that holds a lock. Trying the lock would take it for a
// moment, and a hook that runs at the same time would not check in. So /proc/locks is
// read: "1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF", the device in hex. Lines
// with an arrow are waiting processes.
func holder(root fs.FS, lock string) string {
	var st unix.Stat_t
	if err := unix.Lstat(lock, &st); err != nil {
		return ""
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(text(root, locksFile)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 6 || f[1] != "FLOCK" || f[5] != file:
		case f[4] == "0" || f[4] == "-1":
			return "another run" // in another pid namespace
		default:
			return "process " + f[4]
		}
	}
	return ""
}
