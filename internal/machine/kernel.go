package machine

import (
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/link"
)

const (
	classNet  = "sys/class/net"
	arpFile   = "proc/net/arp" // proc(5)
	arpDone   = 0x2            // ATF_COM, linux/if_arp.h
	arpByHand = 0x4            // ATF_PERM
)

func readKernel(root fs.FS, own []netip.Addr) Kernel {
	k := Kernel{DefaultRoutes: link.DefaultRoutes(root), Own: own}
	entries, _ := fs.ReadDir(root, classNet) // none if it cannot be read
	for _, e := range entries {
		l := Link{Name: e.Name()}
		l.Index, _ = link.Index(root, l.Name)
		dir := path.Join(classNet, l.Name)
		kind := strings.TrimSpace(text(root, dir+"/type"))
		l.Ethernet = kind == "1" && !exists(root, dir+"/bridge") && !link.IsPort(root, l.Name) // ARPHRD_ETHER
		k.Links = append(k.Links, l)
	}
	slices.SortFunc(k.Links, func(a, b Link) int { return a.Index - b.Index })
	for line := range strings.Lines(text(root, arpFile)) {
		// Address HWtype Flags HWaddress Mask Device
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		flags, _ := strconv.ParseUint(f[2], 0, 32)
		if addr, err := netip.ParseAddr(f[0]); err == nil { // not the headings
			k.Neighbours = append(k.Neighbours, Neighbour{addr, f[5], flags&arpByHand != 0, flags&arpDone != 0})
		}
	}
	return k
}
