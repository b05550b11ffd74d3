package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
)

const (
	routeFile   = "proc/net/route" // the main table, proc(5)
	routeUp     = 0x0001           // linux/route.h
	routeReject = 0x0200
)

// hop is how the kernel sends to an address.
type hop struct {
	iface   string
	gateway netip.Addr // zero: the address is on the link
	reject  bool       // the route says that there is none
	bits    int
	metric  uint64
}

// routeTo picks the route to an address out of /proc/net/route: the longest
// prefix, then the least metric.
func routeTo(table string, to netip.Addr) (hop, bool) {
	var best hop
	found := false
	for line := range strings.Lines(table) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		dest, err1 := routeAddr(f[1])
		gateway, err2 := routeAddr(f[2])
		mask, err3 := routeAddr(f[7])
		flags, err4 := strconv.ParseUint(f[3], 16, 32)
		metric, err5 := strconv.ParseUint(f[6], 10, 32)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil || flags&routeUp == 0 {
			continue // the header, among others
		}
		h := hop{iface: f[0], gateway: gateway, reject: flags&routeReject != 0, bits: ones(mask), metric: metric}
		if gateway.IsUnspecified() {
			h.gateway = netip.Addr{}
		}
		if !netip.PrefixFrom(dest, h.bits).Contains(to) {
			continue
		}
		if !found || h.bits > best.bits || h.bits == best.bits && h.metric < best.metric {
			best, found = h, true
		}
	}
	return best, found && !best.reject
}

// routeAddr reads eight hex digits: a number in the machine's byte order whose
// bytes in memory are the address.
func routeAddr(s string) (netip.Addr, error) {
	n, err := strconv.ParseUint(s, 16, 32)
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(n))
	return netip.AddrFrom4(b), err
}

func ones(mask netip.Addr) int {
	n := 0
	for _, b := range mask.As4() {
		for ; b != 0; b <<= 1 {
			n++
		}
	}
	return n
}

func route(ctx context.Context, env *Env) result {
	to := env.target()
	table, _ := fs.ReadFile(env.Root, routeFile)
	h, found := routeTo(string(table), to)
	source, err := env.Source(ctx, to)
	const again = "have NetworkManager set the routes anew"
	if !found && err != nil {
		return fail(fmt.Sprintf("no route to %s", to), again+"; the profile must not have ipv4.never-default or ipv4.ignore-auto-routes", reapply(env))
	}
	if err != nil {
		return fail(fmt.Sprintf("nothing can be sent to %s: %s", to, why(ctx, err)), again, reapply(env))
	}
	seen := fmt.Sprintf("%s from %s", to, source)
	if found {
		seen = fmt.Sprintf("%s on %s from %s", to, h.iface, source)
		if h.gateway.IsValid() {
			seen = fmt.Sprintf("%s via %s on %s from %s", to, h.gateway, h.iface, source)
		}
	}
	if d, ok := owner(env.nm, to); found && ok && d.Interface != h.iface {
		return fail(seen+fmt.Sprintf("; Azure answers %s only, whose lease has the route", d.Interface),
			"give "+d.Interface+" its routes back", "sudo nmcli connection modify "+shell(d.Profile)+" ipv4.ignore-auto-routes no", "sudo nmcli connection up "+shell(d.Profile))
	}
	if d, ok := leaseOf(env.nm, h.iface); ok && d.Lease.Address.IsValid() && d.Lease.Address != source {
		return warn(seen+fmt.Sprintf(", not from the lease's %s: Azure may answer the primary address only", d.Lease.Address),
			"see that the lease's comes first", "ip address show "+shell(h.iface))
	}
	return ok(seen)
}

// owner returns the device whose lease has the one route to the WireServer.
func owner(n *live.NetworkManager, to netip.Addr) (live.Device, bool) {
	if n == nil {
		return live.Device{}, false
	}
	for _, d := range n.Devices {
		if d.Lease != nil && slices.Contains(d.Lease.Routes, netip.PrefixFrom(to, 32)) {
			return d, true
		}
	}
	return live.Device{}, false
}

func leaseOf(n *live.NetworkManager, iface string) (live.Device, bool) {
	if n == nil {
		return live.Device{}, false
	}
	d, ok := n.Device(iface)
	return d, ok && d.Lease != nil
}
