package faults

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// servers are the WireServers of a case.
type servers struct {
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
	ctx, cancel := context.WithCancel(context.Background())
	s := &servers{cancel: cancel}
	s.serve(ctx, constant, phases(c))
	if c.World.Other != nil {
		s.serve(ctx, other, []phase{{script: c.World.Other}})
	}
	if c.World.NoRoute+c.World.Lost > 0 {
		s.later(ctx, c.World.NoRoute+c.World.Lost, func() error { return namespace.IP(addConstant) })
	}
	return s, s.failed()
}

// serve does the phases one after the other. The first one begins before serve returns.
func (s *servers) serve(ctx context.Context, addr string, phases []phase) {
	first := phases[0]
	l, err := listen(addr, first)
	if err != nil {
		s.fail(err)
		return
	}
	s.wg.Go(func() {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if first.lasts > 0 {
			limited, cancel = context.WithTimeout(ctx, first.lasts)
		}
		defer cancel()
		if l == nil {
			<-limited.Done()
		} else {
			server := server{addr, wiretest.New(*first.script, nil)}
			s.mu.Lock()
			s.all = append(s.all, server)
			s.mu.Unlock()
			if err := server.Serve(limited, l); err != nil {
				s.fail(err)
			}
		}
		if len(phases) > 1 && ctx.Err() == nil {
			s.serve(ctx, addr, phases[1:])
		}
	})
}

// listen is for an address that may not be there yet.
func listen(addr string, p phase) (net.Listener, error) {
	if p.script == nil {
		return nil, nil
	}
	l, err := freebind.Listen(context.Background(), "tcp4", addr+":80")
	if err != nil {
		return nil, fmt.Errorf("WireServer at %s: %w", addr, err)
	}
	return l, nil
}

func (s *servers) later(ctx context.Context, after time.Duration, f func() error) {
	s.wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(after):
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
		r.Requests = append(r.Requests, nameOf(req.Request))
		if via, ok := strings.CutPrefix(nameOf(req.Request), "POST "); ok && req.Status/100 == 2 && !req.Foreign {
			r.Readys++
			r.Server, r.Via = req.addr, via
			if via == "provisioning" {
				r.Via = "provisioning-health"
			}
		}
	}
}

func nameOf(r wiretest.Request) string {
	switch r.Method + " " + r.Path {
	case "GET /machine/?comp=goalstate":
		return get
	case "POST /machine/?comp=health":
		return post
	case "POST /provisioning/health":
		return short
	}
	return r.Method + " " + r.Path
}

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
