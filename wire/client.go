package wire

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// What the WireServer reads of a request.
const (
	pathGoalState    = "/machine/?comp=goalstate"
	pathHealth       = "/machine/?comp=health"
	pathProvisioning = "/provisioning/health"

	// The protocol's version. 2015-04-05 exists too; this is the one that every
	// host, also Azure Stack Hub's, is known to speak.
	headerVersion = "x-ms-version"
	version       = "2012-11-30"

	// Free text: who asks. The short way has another name for it.
	headerAgent      = "x-ms-agent-name"
	headerGuestAgent = "x-ms-guest-agent-name"
	agent            = "nm-azure-dispatch"
)

const (
	// serverPort is the WireServer's. 32526 is another service.
	serverPort = 80
	// requestTimeout bounds one request, from the dialling to the answer's last
	// byte. 5 s proved too short for a busy host (canonical/cloud-init#1571).
	requestTimeout = 60 * time.Second
	// maxHeader bounds an answer's header, in bytes.
	maxHeader = 64 << 10
)

// session makes the requests of one attempt, over one connection: a second one
// is made only if the server closes the first (HTTP/1.0).
type session struct {
	base       string // "http://168.63.129.16"
	userAgent  string
	transport  *http.Transport
	beforePost func() // nil: not called
	answered   func() // called after each answer, whatever its status
}

// open makes no connection yet. Close ends the session.
//
// The transport's zero values matter here: no proxy, no cookies and, as plain
// RoundTrip is used, no redirects. A proxy would answer with a page of its own,
// and a redirect would turn a POST into a GET and its 200 into a false success.
func (r *Reporter) open(server netip.Addr, device string, answered func()) *session {
	dial := r.dial
	if dial == nil {
		dial = dialTCP
	}
	host := server.String()
	if r.port != serverPort && r.port != 0 {
		host = netip.AddrPortFrom(server, r.port).String()
	}
	return &session{
		base:       "http://" + host,
		userAgent:  cmp.Or(r.UserAgent, agent),
		beforePost: r.BeforePost,
		answered:   answered,
		transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, dialTimeout)
				defer cancel()
				return dial(ctx, device, address)
			},
			DisableCompression:     true,
			MaxConnsPerHost:        1,
			MaxIdleConnsPerHost:    1,
			MaxResponseHeaderBytes: maxHeader,
		},
	}
}

func (s *session) close() {
	s.transport.CloseIdleConnections()
}

// goalState asks what the WireServer wants of this machine.
func (s *session) goalState(ctx context.Context) (gs GoalState, err error) {
	err = s.do(ctx, http.MethodGet, pathGoalState, nil, http.Header{
		headerVersion: {version},
		headerAgent:   {agent},
	}, func(body io.Reader) (err error) {
		gs, err = ParseGoalState(body)
		return err
	})
	if err != nil {
		return GoalState{}, err
	}
	return gs, nil
}

// health reports h for the goal state that was just read.
func (s *session) health(ctx context.Context, h Health, gs GoalState) error {
	return s.do(ctx, http.MethodPost, pathHealth, h.XML(gs), http.Header{
		headerVersion:  {version},
		headerAgent:    {agent},
		"Content-Type": {"text/xml; charset=utf-8"},
	}, nil)
}

// provisioning reports h the short way.
func (s *session) provisioning(ctx context.Context, h Health) error {
	return s.do(ctx, http.MethodPost, pathProvisioning, h.JSON(), http.Header{
		headerGuestAgent: {agent},
		"Content-Type":   {"application/json"},
	}, nil)
}

// do makes one request and has the body of its answer read. With a read of nil
// the status is the answer, and the body is not waited for. An error of read's is
// returned as it is.
func (s *session) do(ctx context.Context, method, path string, body []byte, header http.Header, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, noAnswerError(requestTimeout))
	defer cancel()
	url := s.base + path
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("wire: %w", err)
	}
	req.Header = header
	req.Header.Set("User-Agent", s.userAgent)
	if method == http.MethodPost && s.beforePost != nil {
		s.beforePost()
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("wire: %s %s: %w", method, url, err)
	}
	defer resp.Body.Close()
	defer s.answered()
	if resp.StatusCode/100 != 2 {
		return newStatusError(url, resp)
	}
	if read == nil {
		return nil
	}
	readErr, err := readBody(resp.Body, read)
	if err != nil {
		return fmt.Errorf("wire: %s %s: body: %w", method, url, err)
	}
	return readErr
}
