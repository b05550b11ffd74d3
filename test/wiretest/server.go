package wiretest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxRequest bounds a request's body, in bytes.
const maxRequest = 1 << 20

// Server plays a script. Make it with [New].
type Server struct {
	log io.Writer

	mu       sync.Mutex
	script   Script
	conns    int
	requests []Request
}

// New returns a server that plays the script and writes one line of JSON for
// each [Request] to log. Nil: nothing is written; see Requests.
func New(script Script, log io.Writer) *Server {
	script.GoalStates = slices.Clone(script.GoalStates)
	script.GoalState = slices.Clone(script.GoalState)
	script.Health = slices.Clone(script.Health)
	script.Provisioning = slices.Clone(script.Provisioning)
	if len(script.GoalStates) == 0 {
		script.GoalStates = []GoalState{DefaultGoalState}
	}
	if log == nil {
		log = io.Discard
	}
	return &Server{log: log, script: script}
}

// Serve is New and Server.Serve, for a process of its own.
func Serve(ctx context.Context, l net.Listener, script Script, log io.Writer) error {
	return New(script, log).Serve(ctx, l)
}

// Serve answers on l until ctx ends; it then closes l and every connection,
// waits for their goroutines, and returns nil. It may be called for several
// listeners: they share the script.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return nil
		}
		if err != nil {
			return err
		}
		conns.Go(func() { s.serveConn(ctx, c) })
	}
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// serveConn answers the requests of one connection.
func (s *Server) serveConn(ctx context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	s.mu.Lock()
	s.conns++
	n := s.conns
	s.mu.Unlock()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest))
		if err != nil {
			return
		}
		req.Header.Set("Host", req.Host)
		step, ans := s.decide(Request{
			UnixNano: time.Now().UnixNano(),
			Conn:     n,
			Remote:   c.RemoteAddr().String(),
			Method:   req.Method,
			Path:     req.URL.RequestURI(),
			Header:   req.Header,
			Body:     string(body),
		})
		if !play(ctx, c, r, step, ans) || req.Close {
			return
		}
	}
}

// decide finds the answer to a request and logs both.
func (s *Server) decide(req Request) (Step, answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	goal := s.script.GoalStates[0]
	var step Step
	var ans answer
	switch req.Method + " " + req.Path {
	case "GET /?comp=versions":
		ans = xmlAnswer(http.StatusOK, versions)
	case "GET /machine/?comp=goalstate", "GET /machine?comp=goalstate":
		step, ans = take(&s.script.GoalState), goal.serveGoalState(req.Header)
	case "POST /machine/?comp=health", "POST /machine?comp=health":
		step, ans = take(&s.script.Health), goal.serveHealth(req.Header, req.Body)
	case "POST /provisioning/health":
		step, ans = take(&s.script.Provisioning), serveProvisioning(req.Body)
	default:
		ans = answer{status: http.StatusNotFound}
	}
	ans = step.apply(ans, goal)
	if step.Advance && len(s.script.GoalStates) > 1 {
		s.script.GoalStates = s.script.GoalStates[1:]
	}

	req.Status, req.Foreign = ans.status, step.Foreign
	if step.silent() {
		req.Status = 0
	}
	s.requests = append(s.requests, req)
	_ = json.NewEncoder(s.log).Encode(req) // a log that cannot be written is found out by its reader
	return step, ans
}
