// Package netlink asks the kernel about IPv4 routes and hears of their changes,
// over rtnetlink(7).
package netlink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxMessage is more than the kernel puts into one notification or answer.
const maxMessage = 8 << 10

// Watch hears of changes of IPv4 routes and addresses, from the moment it is
// made. Close it.
type Watch struct {
	file *os.File // a nonblocking socket, so that deadlines work
}

// NewWatch subscribes to the changes.
func NewWatch() (*Watch, error) {
	fd, err := open(unix.SOCK_NONBLOCK, unix.RTMGRP_IPV4_ROUTE|unix.RTMGRP_IPV4_IFADDR)
	if err != nil {
		return nil, err
	}
	return &Watch{os.NewFile(uintptr(fd), "netlink")}, nil
}

// Close ends the subscription.
func (w *Watch) Close() error { return w.file.Close() }

// Changed waits for the next change. The error is the context's, or the
// socket's. One change can come in several messages, and many at once: whoever
// wants them all as one closes the Watch and makes another.
func (w *Watch) Changed(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = w.file.SetReadDeadline(time.Unix(0, 1)) })
	defer stop()
	_, err := w.file.Read(make([]byte, maxMessage))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, unix.ENOBUFS): // messages were lost: there were changes
		return nil
	case err != nil:
		return fmt.Errorf("netlink: %w", err)
	}
	return nil
}

// WaitRoute waits until there is a route to dst, whoever made it. The error is
// the context's, or why changes cannot be heard of.
func WaitRoute(ctx context.Context, dst netip.Addr) error {
	w, err := NewWatch() // before the first look, so that no change is missed
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		if _, err := Lookup(dst, netip.Addr{}); err == nil {
			return nil
		}
		if err := w.Changed(ctx); err != nil {
			return fmt.Errorf("no route to %s: %w", dst, err)
		}
	}
}

// open opens a socket that hears of the groups.
func open(flags int, groups uint32) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, fmt.Errorf("netlink: socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("netlink: bind: %w", err)
	}
	return fd, nil
}
