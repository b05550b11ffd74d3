package faults

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// servers are the WireServers of a case, and what happens to the network meanwhile. They end with this process.
type servers struct {
	mu  sync.Mutex
	all []server
}

type server struct {
	addr string
	*wiretest.Server
}

// request is one that a server received.
type request struct {
	wiretest.Request
	addr string // the server's
}

// startServers returns when those listen that listen from the beginning.
func startServers(c Case) *servers {
	s := &servers{}
	after(c.World.Refused, func() { s.serve(constant, c.Script) })
	if c.World.Other != nil {
		s.serve(other, *c.World.Other)
	}
	if late := c.World.NoRoute + c.World.Lost; late > 0 {
		after(late, func() { must(namespace.IP(addConstant)) })
	}
	return s
}

// after calls f before it returns, or later.
func after(wait time.Duration, f func()) {
	if wait == 0 {
		f()
		return
	}
	time.AfterFunc(wait, f)
}

// serve listens at an address that may not be there yet, IP_FREEBIND in ip(7).
func (s *servers) serve(addr string, script wiretest.Script) {
	freebind := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { must(unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)) })
	}}
	l, err := freebind.Listen(context.Background(), "tcp4", addr+":80")
	must(err)
	server := server{addr, wiretest.New(script)}
	s.mu.Lock()
	s.all = append(s.all, server)
	s.mu.Unlock()
	go func() { must(server.Serve(context.Background(), l)) }()
}

// requests are those of all servers, in the order in which they came.
func (s *servers) requests() (all []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.all {
		for _, r := range server.Requests() {
			all = append(all, request{r, server.addr})
		}
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.UnixNano, b.UnixNano) })
	return all
}

// posting reports whether a POST is under way or was accepted.
func (s *servers) posting() bool {
	s.mu.Lock()
	underWay := slices.ContainsFunc(s.all, func(server server) bool { return server.Posting() })
	s.mu.Unlock()
	return underWay || slices.ContainsFunc(s.requests(), request.accepted)
}

// into takes what the servers saw into the result.
func (s *servers) into(r *Result) {
	for _, req := range s.requests() {
		r.Requests = append(r.Requests, req.name())
		if req.accepted() {
			r.Readys++
			r.Server, r.Via = req.addr, vias[req.name()]
		}
	}
}

func (r request) name() string {
	name := r.Method + " " + r.Path
	return cmp.Or(names[name], name)
}

func (r request) accepted() bool {
	return vias[r.name()] != "" && r.Status/100 == 2 && !r.Foreign
}

var (
	names = map[string]string{
		"GET /machine/?comp=goalstate": get, "POST /machine/?comp=health": post, "POST /provisioning/health": short,
	}
	vias = map[string]string{post: "health", short: "provisioning-health"}
)
