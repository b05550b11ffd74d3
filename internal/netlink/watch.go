// Package netlink reads IPv4 routes from the kernel and watches for changes, with
// rtnetlink(7).
package netlink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

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
