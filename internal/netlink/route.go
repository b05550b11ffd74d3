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

// mainRule is the priority of the rule that leads to the main table, ip-rule(8).
// The local table's has 0.
const mainRule = 32766

// Lookup asks the kernel for the route to an IPv4 address; src is the source
// address of the packets, or zero. The error wraps the kernel's: ENETUNREACH if
// there is no route, and for one that drops packets EINVAL (blackhole),
// EHOSTUNREACH (unreachable) or EACCES (prohibit).
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
	m, err := ask(q)
	if err != nil {
		return Route{}, fmt.Errorf("netlink: route to %s: %w", dst, err)
	}
	a := attributes(m)
	return Route{
		Index: int(number(a[unix.RTA_OIF])), Table: int(number(a[unix.RTA_TABLE])),
		Gateway: addr(a[unix.RTA_GATEWAY]), Source: addr(a[unix.RTA_PREFSRC]),
	}, nil
}

// ask makes a request that has one message for an answer, which waits in the
// socket when Sendto returns.
func ask(q []byte) (m syscall.NetlinkMessage, err error) {
	fd, err := open(unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return m, err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, q, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return m, err
	}
	buf := make([]byte, maxMessage)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return m, err
	}
	answers, err := syscall.ParseNetlinkMessage(buf[:n])
	if err != nil || len(answers) == 0 || len(answers[0].Data) < unix.SizeofRtMsg {
		return m, cmp.Or[error](err, unix.EBADMSG)
	}
	if m = answers[0]; m.Header.Type == unix.NLMSG_ERROR {
		return m, unix.Errno(-int32(number(m.Data[:4])))
	}
	return m, nil
}

// Rules returns the priorities of the IPv4 rules that were added before the main
// table's, in the order in which they apply.
func Rules() ([]int, error) {
	var messages []syscall.NetlinkMessage
	dump, err := syscall.NetlinkRIB(unix.RTM_GETRULE, unix.AF_INET)
	if err == nil {
		messages, err = syscall.ParseNetlinkMessage(dump)
	}
	if err != nil {
		return nil, fmt.Errorf("netlink: rules: %w", err)
	}
	var out []int
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWRULE || len(m.Data) < unix.SizeofRtMsg {
			continue
		}
		if priority := int(number(attributes(m)[unix.FRA_PRIORITY])); priority > 0 && priority < mainRule {
			out = append(out, priority)
		}
	}
	return out, nil
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
	v := a.As4()
	b = binary.NativeEndian.AppendUint16(b, unix.SizeofRtAttr+uint16(len(v)))
	return append(binary.NativeEndian.AppendUint16(b, attr), v[:]...)
}

// number returns 0 for what is no number of 32 bits.
func number(b []byte) uint32 {
	if len(b) != 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

func addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}
