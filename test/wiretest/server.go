package wiretest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxRequest bounds a request's body, in bytes.
const maxRequest = 1 << 20

// Request is a request that was read to its end, and what was decided on as the answer. It is noted before the answer, so
// that a client that has received the answer finds it.
type Request struct {
	UnixNano int64 // when its last byte had come
	Conn     int   // the connection, counted from 1
	Method   string
	Path     string      // with the query
	Header   http.Header // with Host; names in canonical form
	Body     string
	Status   int  // 0 if there was no answer
	Foreign  bool // the step's
}

// Server plays a script. Make it with [New].
type Server struct {
	mu       sync.Mutex
	script   Script
	conns    int
	posting  int // POSTs that were read and are not answered yet
	requests []Request
}

// New returns a server that plays the script.
func New(script Script) *Server {
	script.GoalStates = slices.Clone(script.GoalStates)
	script.GoalState = slices.Clone(script.GoalState)
	script.Health = slices.Clone(script.Health)
	script.Provisioning = slices.Clone(script.Provisioning)
	if len(script.GoalStates) == 0 {
		script.GoalStates = []GoalState{DefaultGoalState}
	}
	return &Server{script: script}
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

// Posting reports whether a POST was read and its answer, if there will be one, is not sent yet.
func (s *Server) Posting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posting > 0
}

// post counts the POSTs under way.
func (s *Server) post(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posting += change
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
		if req.Method == http.MethodPost {
			s.post(1)
		}
		step, ans := s.decide(Request{
			UnixNano: time.Now().UnixNano(),
			Conn:     n,
			Method:   req.Method,
			Path:     req.URL.RequestURI(),
			Header:   req.Header,
			Body:     string(body),
		})
		again := play(ctx, c, r, step, ans)
		if req.Method == http.MethodPost {
			s.post(-1)
		}
		if !again || req.Close {
			return
		}
	}
}

// decide finds the answer to a request and notes both.
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
	return step, ans
}
