package wire

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
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

	// The protocol's version. 2015-04-05 exists too; this is the one that every
	// host, also Azure Stack Hub's, is known to speak.
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
	// dialTimeout bounds the TCP handshake. The server is one hop away; two seconds
	// leave room for one lost SYN, which the kernel repeats after one.
	dialTimeout = 2 * time.Second
	// maxHeader bounds an answer's header, in bytes.
	maxHeader = 64 << 10
)

// session makes the requests of one attempt, over one connection: a second one
// is made only if the server closes the first (HTTP/1.0).
type session struct {
	*Reporter
	base      string // "http://168.63.129.16"
	transport *http.Transport
	suspicion *suspicion // of this server, from earlier attempts
	answered  func()     // called after each answer, whatever its status
}

// open returns a session without a connection yet. Close ends the session.
//
// The transport's zero values matter here: no proxy, no cookies and, as plain
// RoundTrip is used, no redirects. A proxy would answer with a page of its own,
// and a redirect would turn a POST into a GET and its 200 into a false success.
func (r *Reporter) open(server netip.Addr, device string, suspect *suspicion, answered func()) *session {
	host := server.String()
	if r.port != 0 {
		host = netip.AddrPortFrom(server, r.port).String()
	}
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
	return &session{r, "http://" + host, transport, suspect, answered}
}

func (s *session) close() {
	s.transport.CloseIdleConnections()
}

// report makes the requests of an attempt.
func (s *session) report(ctx context.Context, via Via, h Health) (GoalState, error) {
	if via == ViaProvisioning {
		return s.do(ctx, http.MethodPost, pathProvisioning, h.JSON(), http.Header{
			headerGuestAgent: {agent},
			"Content-Type":   {"application/json"},
		})
	}
	gs, err := s.goalState(ctx)
	if err != nil {
		return gs, err
	}
	_, err = s.do(ctx, http.MethodPost, pathHealth, h.XML(gs), http.Header{
		headerVersion:  {version},
		headerAgent:    {agent},
		"Content-Type": {"text/xml; charset=utf-8"},
	})
	return gs, err
}

func (s *session) goalState(ctx context.Context) (GoalState, error) {
	return s.do(ctx, http.MethodGet, pathGoalState, nil, http.Header{
		headerVersion: {version},
		headerAgent:   {agent},
	})
}

// do makes one request and returns the result of judge for its answer.
func (s *session) do(ctx context.Context, method, path string, body []byte, header http.Header) (GoalState, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, noAnswerError(requestTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return GoalState{}, bounded.Error(fmt.Errorf("wire: %w", err))
	}
	req.Header = header
	req.Header.Set("User-Agent", cmp.Or(s.UserAgent, agent))
	if method == http.MethodPost && s.BeforePost != nil {
		s.BeforePost()
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return GoalState{}, bounded.Error(fmt.Errorf("wire: %s %s: %w", method, req.URL, err))
	}
	defer resp.Body.Close()
	defer s.answered()
	gs, err := s.suspicion.judge(path, resp)
	return gs, bounded.Error(err)
}

// noAnswerError has the time after which an attempt without an answer was
// cancelled. It is the cause of the cancellation.
type noAnswerError time.Duration

func (e noAnswerError) Error() string {
	return fmt.Sprintf("no answer in %s", time.Duration(e).Round(time.Millisecond))
}

// dialTCP makes a TCP connection over IPv4, bound to the device if one is named,
// whatever the routing table says: with two network interfaces the default route
// can be on the one that gets no answer from the WireServer. See SO_BINDTODEVICE
// in socket(7).
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
