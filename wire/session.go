package wire

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

// What the WireServer reads from a request.
const (
	pathGoalState    = "/machine/?comp=goalstate"
	pathHealth       = "/machine/?comp=health"
	pathProvisioning = "/provisioning/health"

	// The version that every host, also Azure Stack Hub's, is known to speak.
	headerVersion = "x-ms-version"
	version       = "2012-11-30"

	// Free text that names the client. The JSON endpoint uses another header for it.
	headerAgent      = "x-ms-agent-name"
	headerGuestAgent = "x-ms-guest-agent-name"
	agent            = "nm-azure-dispatch"
)

const (
	// requestTimeout bounds one request, from dialling to the last byte of the
	// answer. 5 s proved too short for a busy host (canonical/cloud-init#1571).
	requestTimeout = 60 * time.Second
	dialTimeout    = 2 * time.Second // room for one lost SYN, which the kernel repeats after one
	maxHeader      = 64 << 10        // of an answer, in bytes
)

// session makes the requests of one attempt, over one connection unless the server
// closes it.
type session struct {
	*Reporter
	base      string // "http://168.63.129.16"
	transport *http.Transport
	suspicion *suspicion // of this server, from earlier attempts
	answered  func()     // called after each answer, whatever its status
	posted    bool       // BeforePost was called
}

// open returns a session without a connection yet. The transport's zero values and
// plain RoundTrip mean: no proxy, which would answer with a page of its own, and no
// redirects, which turn a POST into a GET and its 200 into a false success.
func (r *Reporter) open(server netip.Addr, device string, suspect *suspicion, answered func()) *session {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			if r.dial != nil {
				return r.dial(ctx, device, address)
			}
			return dialTCP(ctx, device, address)
		},
		DisableCompression:     true,
		MaxConnsPerHost:        1,
		MaxIdleConnsPerHost:    1,
		MaxResponseHeaderBytes: maxHeader,
	}
	return &session{r, "http://" + server.String(), transport, suspect, answered, false}
}

func (s *session) close() {
	s.transport.CloseIdleConnections()
}

func (s *session) report(ctx context.Context, via Via, h Health) (GoalState, error) {
	if via == ViaProvisioning {
		return s.do(ctx, pathProvisioning, "application/json", h.JSON())
	}
	gs, err := s.goalState(ctx)
	if err == nil {
		_, err = s.do(ctx, pathHealth, "text/xml; charset=utf-8", h.XML(gs))
	}
	return gs, err
}

func (s *session) goalState(ctx context.Context) (GoalState, error) {
	return s.do(ctx, pathGoalState, "", nil)
}

// do makes one request, a POST if it has a body, and returns the result of judge.
func (s *session) do(ctx context.Context, path, contentType string, body []byte) (GoalState, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, noAnswerError(requestTimeout))
	defer cancel()
	header := http.Header{"User-Agent": {cmp.Or(s.UserAgent, agent)}}
	if path == pathProvisioning {
		header[headerGuestAgent] = []string{agent}
	} else {
		header[headerVersion], header[headerAgent] = []string{version}, []string{agent}
	}
	method := http.MethodGet
	if body != nil {
		method, header["Content-Type"] = http.MethodPost, []string{contentType}
		if s.BeforePost != nil {
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
				if !s.posted { // net/http repeats a request if the server has closed the connection before
					s.posted = true
					s.BeforePost()
				}
			}})
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return GoalState{}, bounded.Error(fmt.Errorf("wire: %w", err))
	}
	req.Header = header
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return GoalState{}, bounded.Error(fmt.Errorf("wire: %s %s: %w", method, req.URL, err))
	}
	defer resp.Body.Close()
	defer s.answered()
	gs, err := s.suspicion.judge(path, resp)
	return gs, bounded.Error(err)
}

// noAnswerError is the cause of a cancellation: the time without an answer.
type noAnswerError time.Duration

func (e noAnswerError) Error() string {
	return fmt.Sprintf("no answer in %s", time.Duration(e).Round(time.Millisecond))
}

// dialTCP makes a TCP connection over IPv4, bound to the device if one is named
// (SO_BINDTODEVICE in socket(7)): with two network interfaces the route to the
// WireServer can be on the one that it does not answer.
func dialTCP(ctx context.Context, device, address string) (net.Conn, error) {
	var d net.Dialer
	if device != "" {
		d.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			cerr := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), device) })
			if err != nil {
				return &net.OpError{Op: "bind to " + device, Net: "tcp4", Err: err}
			}
			return cerr
		}
	}
	return d.DialContext(ctx, "tcp4", address)
}
