package faults

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// servers are the WireServers of a case, and what happens to the network meanwhile.
type servers struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	all    []server
	err    error
}

type server struct {
	addr string
	*wiretest.Server
}

// startServers returns when those listen that listen from the beginning.
func startServers(c Case) (*servers, error) {
	s := &servers{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.after(c.World.Refused, func() error { return s.serve(constant, c.Script) })
	if c.World.Other != nil {
		s.after(0, func() error { return s.serve(other, *c.World.Other) })
	}
	if late := c.World.NoRoute + c.World.Lost; late > 0 {
		s.after(late, func() error { return namespace.IP(addConstant) })
	}
	return s, s.failed()
}

// serve listens at an address that may not be there yet.
func (s *servers) serve(addr string, script wiretest.Script) error {
	l, err := freebind.Listen(s.ctx, "tcp4", addr+":80")
	if err != nil {
		return fmt.Errorf("WireServer at %s: %w", addr, err)
	}
	server := server{addr, wiretest.New(script)}
	s.mu.Lock()
	s.all = append(s.all, server)
	s.mu.Unlock()
	s.wg.Go(func() { s.fail(server.Serve(s.ctx, l)) })
	return nil
}

// after does something before it returns, or later.
func (s *servers) after(wait time.Duration, f func() error) {
	if wait == 0 {
		s.fail(f())
		return
	}
	s.wg.Go(func() {
		select {
		case <-s.ctx.Done():
		case <-time.After(wait):
			s.fail(f())
		}
	})
}

func (s *servers) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
}

func (s *servers) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *servers) stop() {
	s.cancel()
	s.wg.Wait()
}

// into takes what the servers saw into the result.
func (s *servers) into(r *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type seen struct {
		wiretest.Request
		addr string
	}
	var all []seen
	for _, server := range s.all {
		for _, req := range server.Requests() {
			all = append(all, seen{req, server.addr})
		}
	}
	slices.SortStableFunc(all, func(a, b seen) int { return cmp.Compare(a.UnixNano, b.UnixNano) })
	for _, req := range all {
		name := cmp.Or(names[req.Method+" "+req.Path], req.Method+" "+req.Path)
		r.Requests = append(r.Requests, name)
		if via, ok := vias[name]; ok && req.Status/100 == 2 && !req.Foreign {
			r.Readys++
			r.Server, r.Via = req.addr, via
		}
	}
}

var (
	names = map[string]string{
		"GET /machine/?comp=goalstate": get, "POST /machine/?comp=health": post, "POST /provisioning/health": short,
	}
	vias = map[string]string{post: "health", short: "provisioning-health"}
)

// freebind listens at addresses that are not there yet, ip(7).
var freebind = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)
	}); cerr != nil {
		return cerr
	}
	return err
}}
