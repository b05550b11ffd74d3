package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
)

const (
	classNet  = "sys/class/net"
	arpFile   = "proc/net/arp" // proc(5)
	arpDone   = 0x2            // ATF_COM, linux/if_arp.h
	arpByHand = 0x4            // ATF_PERM
	locksFile = "proc/locks"
	lockName  = "check-in.lock" // of the package boot
)

func readKernel(root fs.FS, own func() []netip.Addr) Kernel {
	k := Kernel{DefaultRoutes: link.DefaultRoutes(root), Own: own()}
	entries, _ := fs.ReadDir(root, classNet) // none if it cannot be read
	for _, e := range entries {
		l := Link{Name: e.Name()}
		l.Index, _ = link.Index(root, l.Name)
		dir := path.Join(classNet, l.Name)
		kind := strings.TrimSpace(string(text(root, dir+"/type")))
		l.Ethernet = kind == "1" && !exists(root, dir+"/bridge") && !link.Slave(root, l.Name) // ARPHRD_ETHER
		l.Hardware = exists(root, dir+"/device")
		k.Links = append(k.Links, l)
	}
	slices.SortFunc(k.Links, func(a, b Link) int { return a.Index - b.Index })
	for line := range strings.Lines(string(text(root, arpFile))) {
		// Address HWtype Flags HWaddress Mask Device
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		addr, err := netip.ParseAddr(f[0])
		flags, _ := strconv.ParseUint(f[2], 0, 32)
		if err == nil {
			k.Neighbours = append(k.Neighbours, Neighbour{addr, f[5], flags&arpByHand != 0, flags&arpDone != 0})
		}
	}
	return k
}

// readRecords reads the records of this boot, also those of links.
func readRecords(root fs.FS, dir string) Records {
	r := Records{Links: map[string]Seen[boot.Link]{}}
	r.BootID, r.BootErr = boot.ID(root)
	store := boot.Store{Dir: dir, BootID: r.BootID}
	r.CheckIn.V, r.CheckIn.Err = store.CheckIn()
	r.Holder = holder(root, dir)
	entries, _ := fs.ReadDir(root, classNet) // none if it cannot be read
	for _, e := range entries {
		index, _ := link.Index(root, e.Name())
		rec, err := store.Link(index, e.Name())
		if !errors.Is(err, fs.ErrNotExist) {
			r.Links[e.Name()] = Seen[boot.Link]{rec, err}
		}
	}
	return r
}

// holder returns the process that holds the lock of the check-in. Trying the lock
// would take it for a moment, and a hook that runs at the same time would not check
// in. So /proc/locks is read: "1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0
// EOF", the device in hex. Lines with an arrow are waiting processes.
func holder(root fs.FS, dir string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path.Join(dir, lockName), &st); err != nil {
		return ""
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(text(root, locksFile))) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return "process " + f[4]
		}
		return "another run" // in another pid namespace
	}
	return ""
}
