package wire

import (
	"context"
	"net"
	"syscall"
	"time"
)

// dialTimeout bounds the TCP handshake. The server is one hop away; two seconds
// leave room for one lost SYN, which the kernel repeats after one.
const dialTimeout = 2 * time.Second

// dialFunc makes a TCP connection over IPv4, through the device if one is named.
type dialFunc func(ctx context.Context, device, address string) (net.Conn, error)

// dialTCP is the dialFunc of every Reporter outside of tests.
func dialTCP(ctx context.Context, device, address string) (net.Conn, error) {
	var d net.Dialer
	if device != "" {
		d.Control = func(_, _ string, c syscall.RawConn) error { return bindTo(c, device) }
	}
	return d.DialContext(ctx, "tcp4", address)
}

// bindTo makes the socket use the device whatever the routing table says:
// with two network interfaces the default route can be on the one that gets no
// answer from the WireServer. See SO_BINDTODEVICE in socket(7).
func bindTo(c syscall.RawConn, device string) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), device) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return &net.OpError{Op: "bind to " + device, Net: "tcp4", Err: err}
	}
	return nil
}
