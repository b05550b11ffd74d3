package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

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
