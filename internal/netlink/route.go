package netlink

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Route is the kernel's route for an address.
type Route struct {
	Index   int        // of the interface; 0 if none
	Gateway netip.Addr // zero if the address is on the link
	Source  netip.Addr // the preferred source address; zero if none
	Table   int        // the routing table that had the route
}

const mainRule = 32766 // the priority of the rule for the main table, ip-rule(8)

// Lookup asks the kernel for the route to an IPv4 address; src is the packets'
// source address, or zero. The error wraps the kernel's: ENETUNREACH without a
// route, EINVAL (blackhole), EHOSTUNREACH (unreachable) or EACCES (prohibit).
func Lookup(dst, src netip.Addr) (Route, error) {
	q := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtMsg) // struct nlmsghdr and struct rtmsg
	binary.NativeEndian.PutUint16(q[4:], unix.RTM_GETROUTE)
	binary.NativeEndian.PutUint16(q[6:], unix.NLM_F_REQUEST)
	q[16], q[17] = unix.AF_INET, 32
	binary.NativeEndian.PutUint32(q[24:], unix.RTM_F_LOOKUP_TABLE)
	q = appendAddr(q, unix.RTA_DST, dst)
	if src.IsValid() {
		q[18] = 32
		q = appendAddr(q, unix.RTA_SRC, src)
	}
	binary.NativeEndian.PutUint32(q, uint32(len(q)))
	a, err := ask(q)
	if err != nil {
		return Route{}, fmt.Errorf("netlink: route to %s: %w", dst, err)
	}
	gateway, _ := netip.AddrFromSlice(a[unix.RTA_GATEWAY])
	source, _ := netip.AddrFromSlice(a[unix.RTA_PREFSRC])
	return Route{number(a[unix.RTA_OIF]), gateway, source, number(a[unix.RTA_TABLE])}, nil
}

// ask returns the attributes of the one message that answers a request.
func ask(q []byte) (map[uint16][]byte, error) {
	fd, err := open(0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, q); err != nil {
		return nil, err
	}
	buf := make([]byte, maxMessage)
	n, err := unix.Read(fd, buf) // the answer is in the socket when Write returns
	if err != nil {
		return nil, err
	}
	answers, err := syscall.ParseNetlinkMessage(buf[:n])
	if err != nil {
		return nil, err
	}
	if m := answers[0]; m.Header.Type == unix.NLMSG_ERROR {
		return nil, unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
	}
	return attributes(answers[0]), nil
}

// Rules returns the priorities of the IPv4 rules between those of the local and the
// main table, in the order in which they apply.
func Rules() (priorities []int, err error) {
	dump, err := syscall.NetlinkRIB(unix.RTM_GETRULE, unix.AF_INET)
	messages, err2 := syscall.ParseNetlinkMessage(dump)
	if err := cmp.Or(err, err2); err != nil {
		return nil, fmt.Errorf("netlink: rules: %w", err)
	}
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWRULE {
			continue // the end of the dump
		}
		if p := number(attributes(m)[unix.FRA_PRIORITY]); p > 0 && p < mainRule {
			priorities = append(priorities, p)
		}
	}
	return priorities, nil
}

// attributes returns those of a route or a rule; struct fib_rule_hdr is as long
// as struct rtmsg.
func attributes(m syscall.NetlinkMessage) map[uint16][]byte {
	m.Header.Type = unix.RTM_NEWROUTE
	list, _ := syscall.ParseNetlinkRouteAttr(&m)
	out := map[uint16][]byte{}
	for _, a := range list {
		out[a.Attr.Type] = a.Value
	}
	return out
}

func appendAddr(b []byte, attr uint16, a netip.Addr) []byte {
	b = binary.NativeEndian.AppendUint16(b, unix.SizeofRtAttr+4)
	return append(binary.NativeEndian.AppendUint16(b, attr), a.AsSlice()...)
}

// number returns 0 for what is no number of 32 bits.
func number(b []byte) int {
	if len(b) != 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(b))
}
