package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
)

const (
	locksFile = "proc/locks"
	lockName  = "check-in.lock" // of the package boot
	tryAgain  = "once the steps before are ok"
	checkIn   = "sudo systemctl start " + checkInUnit
)

func record(_ context.Context, env *Env) result {
	if env.BootID == "" {
		return warn("the boot ID cannot be read, so no record counts", "look at it", "cat /proc/sys/kernel/random/boot_id")
	}
	rec, err := env.Records.CheckIn(env.BootID)
	holder, held := lockHolder(env)
	switch {
	case errors.Is(err, fs.ErrNotExist) && held:
		return warn(holder+" is checking in", "wait, and look again")
	case errors.Is(err, fs.ErrNotExist):
		return fail("in this boot nothing has checked in, nor tried to", tryAgain, checkIn)
	case err != nil:
		return warn(strings.TrimPrefix(err.Error(), "boot: "), "remove what is in the way, then check in", checkIn)
	}
	switch rec.State {
	case boot.Ready:
		return ok(fmt.Sprintf("checked in %s after boot, with %s, after %s", after(rec.AfterBootMS), rec.WireServer, attempts(rec.Attempts)))
	case boot.Failed:
		return fail("ProvisioningFailed was reported, and that stands for this boot", "restart the VM once the cause is mended, or check in all the same", "sudo nm-azure-dispatch check-in --force")
	}
	seen := fmt.Sprintf("not checked in after %s; last: %s", attempts(rec.Attempts), rec.LastError)
	if held {
		return warn(seen+"; "+holder+" goes on trying", "mend what failed before this, the rest follows by itself")
	}
	return fail(seen+"; nobody is trying any more", tryAgain, checkIn)
}

func after(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return strconv.Itoa(n) + " attempts"
}

// lockHolder tells who holds the lock of the check-in. To try it would be to
// hold it for a moment, and a run that comes then would leave the check-in to
// us.
func lockHolder(env *Env) (string, bool) {
	var st unix.Stat_t
	if err := unix.Lstat(string(env.Records)+"/"+lockName, &st); err != nil {
		return "", false
	}
	locks, _ := fs.ReadFile(env.Root, locksFile)
	return flockHolder(string(locks), unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
}

// flockHolder finds a file's lock in /proc/locks: "1: FLOCK ADVISORY WRITE PID
// MAJOR:MINOR:INODE 0 EOF", the device in hex. Lines with an arrow are of those
// who wait.
func flockHolder(locks string, major, minor uint32, inode uint64) (string, bool) {
	file := fmt.Sprintf("%02x:%02x:%d", major, minor, inode)
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return "process " + f[4], true
		}
		return "another run", true // in another pid namespace
	}
	return "", false
}
