// Package link reads network interfaces and routes from /sys and /proc, without a
// socket.
package link

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Paths are relative to /; the formats are those of
// Documentation/ABI/testing/sysfs-class-net and proc(5).
const (
	classNet  = "sys/class/net"
	routeFile = "proc/net/route"
)

// flagsVRF are IFF_MASTER and IFF_NOARP of linux/if.h.
const flagsVRF = 0x400 | 0x80

// Index returns the index of an interface.
func Index(root fs.FS, iface string) (int, error) {
	b, err := fs.ReadFile(root, classNet+"/"+iface+"/ifindex")
	if err != nil {
		return 0, fmt.Errorf("link: /%s/%s/ifindex: %w", classNet, iface, errors.Unwrap(err)) // its path lacks the slash
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("link: /%s/%s/ifindex holds %.32q, want a positive number", classNet, iface, b)
	}
	return n, nil
}

// Exists reports whether an interface has the index. If the interfaces cannot be
// read, it may exist.
func Exists(root fs.FS, index int) bool {
	entries, err := fs.ReadDir(root, classNet)
	return err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		n, _ := Index(root, e.Name())
		return n == index
	})
}

// IsPort reports whether the interface is a port of a bond, bridge or similar device:
// the lease is then its master's. Azure's accelerated networking makes such
// pairs. A VRF, the master with the flags MASTER and NOARP, has no lease.
func IsPort(root fs.FS, iface string) bool {
	if _, err := fs.Lstat(root, classNet+"/"+iface+"/master"); err != nil {
		return false
	}
	b, _ := fs.ReadFile(root, classNet+"/"+iface+"/master/flags")
	flags, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 0, 32)
	return flags&flagsVRF != flagsVRF
}

// DefaultRoutes returns the interfaces that have an IPv4 default route in the
// main table, in the kernel's order: the most preferred first. There are none if the
// table cannot be read.
func DefaultRoutes(root fs.FS) []string {
	const all, none = "00000000", "*" // addresses, and the interface of a route that drops packets
	table, _ := fs.ReadFile(root, routeFile)
	var names []string
	for line := range strings.Lines(string(table)) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		f := strings.Fields(line)
		if len(f) > 7 && f[0] != none && f[1] == all && f[7] == all {
			names = append(names, f[0])
		}
	}
	return names
}
