package machine

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
)

// DialTCP opens a TCP connection and closes it.
func DialTCP(ctx context.Context, to netip.AddrPort) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", to.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// AskSmall requests a goal state with segments of 536 bytes, which every path
// accepts, and waits for the beginning of an answer.
func AskSmall(ctx context.Context, server netip.Addr) error {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 536)
		}); e != nil {
			return e
		}
		return err
	}}
	conn, err := d.DialContext(ctx, "tcp4", netip.AddrPortFrom(server, 80).String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err = fmt.Fprintf(conn, "GET /machine/?comp=goalstate HTTP/1.1\r\nHost: %s\r\nx-ms-version: 2012-11-30\r\nConnection: close\r\n\r\n", server); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, len("HTTP/1.1 200")))
	return err
}
