// Package netlink reads IPv4 routes from the kernel and watches for changes, with
// rtnetlink(7).
package netlink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxMessage is larger than any notification or answer of the kernel.
const maxMessage = 8 << 10

// Changes delivers a value when IPv4 routes or addresses have changed since the
// last one was received, until ctx ends. Many changes can be one value.
func Changes(ctx context.Context) (<-chan struct{}, error) {
	fd, err := open(unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV4_IFADDR)
	if err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(fd), "netlink") // nonblocking: Close ends a Read
	context.AfterFunc(ctx, func() { _ = socket.Close() })
	changes := make(chan struct{}, 1)
	go func() {
		for buf := make([]byte, maxMessage); ; {
			// With ENOBUFS messages were lost: there were changes.
			if _, err := socket.Read(buf); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return
			}
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}()
	return changes, nil
}

// WaitRoute waits until there is a route to dst or ctx ends, and looks whenever
// changes delivers a value; without changes it does not wait.
func WaitRoute(ctx context.Context, dst netip.Addr, changes <-chan struct{}) {
	for changes != nil {
		if _, err := Lookup(dst, netip.Addr{}); err == nil {
			return
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
	}
}

// open opens a nonblocking socket that is subscribed to the groups.
func open(groups uint32) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups})
	}
	if err != nil {
		_ = unix.Close(fd) // -1 if there is none
		return -1, fmt.Errorf("netlink: socket: %w", err)
	}
	return fd, nil
}

// Route is the kernel's route for an address.
type Route struct {
	Index   int        // of the interface; 0 if none
	Gateway netip.Addr // zero if the address is on the link
	Source  netip.Addr // the preferred source address; zero if none
	Table   int        // the routing table that had the route
}

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
	list, _ := syscall.ParseNetlinkRouteAttr(&answers[0])
	attributes := map[uint16][]byte{}
	for _, a := range list {
		attributes[a.Attr.Type] = a.Value
	}
	return attributes, nil
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
