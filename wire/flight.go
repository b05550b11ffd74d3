package wire

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
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
	requestTimeout = 60 * time.Second // 5 s proved too short for a busy host (canonical/cloud-init#1571)
	dialTimeout    = 2 * time.Second  // room for one lost SYN, which the kernel repeats after one
	maxHeader      = 64 << 10         // of an answer, in bytes
)

// flight is an attempt in progress. Its requests use one connection unless the server
// closes it. GoalState, Posted and Err are its goroutine's until answers is closed.
type flight struct {
	Attempt
	r         *Reporter
	middlebox *atomic.Bool // see judge; of earlier attempts too
	transport *http.Transport
	answers   chan struct{} // one value for each answered request; closed at the end
	asked     time.Time     // when the unanswered request was sent
	cancel    context.CancelCauseFunc
}

// newFlight returns an attempt without a connection yet. The transport's zero values
// and plain RoundTrip mean: no proxy, which would answer with a page of its own, and
// no redirects, which turn a POST into a GET and its 200 into a false success.
func (r *Reporter) newFlight(a Attempt, middlebox *atomic.Bool) *flight {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			if r.dial != nil {
				return r.dial(ctx, a.Device, address)
			}
			return dialTCP(ctx, a.Device, address)
		},
		DisableCompression:     true,
		MaxConnsPerHost:        1,
		MaxIdleConnsPerHost:    1,
		MaxResponseHeaderBytes: maxHeader,
	}
	answers := make(chan struct{}, 2) // an attempt makes two requests at most: sending never blocks
	return &flight{Attempt: a, r: r, middlebox: middlebox, transport: transport, answers: answers, asked: time.Now()}
}

// start makes the requests. Only stop cancels them, which knows a better reason than
// that of ctx.
func (f *flight) start(ctx context.Context, h Health) {
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		defer close(f.answers)
		defer f.cancel(nil)
		defer f.transport.CloseIdleConnections()
		f.Err = f.report(ctx, h)
	}()
}

// stop cancels the attempt, waits for it, and returns its error, nil if it
// succeeded before.
func (f *flight) stop(cause error) error {
	f.cancel(cause)
	for range f.answers {
	}
	return f.Err
}

// pending returns the channel of f's answers; for no f, one that never delivers.
func (f *flight) pending() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.answers
}

func (f *flight) report(ctx context.Context, h Health) error {
	if f.Via == ViaProvisioning {
		return f.do(ctx, pathProvisioning, "application/json", h.JSON())
	}
	if err := f.do(ctx, pathGoalState, "", nil); err != nil {
		return err
	}
	return f.do(ctx, pathHealth, "text/xml; charset=utf-8", h.XML(f.GoalState))
}

// do makes one request, a POST if it has a body, and returns the error of judge.
func (f *flight) do(ctx context.Context, path, contentType string, body []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, noAnswerError(requestTimeout))
	defer cancel()
	header := http.Header{"User-Agent": {cmp.Or(f.r.UserAgent, agent)}}
	if path == pathProvisioning {
		header[headerGuestAgent] = []string{agent}
	} else {
		header[headerVersion], header[headerAgent] = []string{version}, []string{agent}
	}
	method := http.MethodGet
	if body != nil {
		method, header["Content-Type"] = http.MethodPost, []string{contentType}
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: f.posting})
	}
	req, _ := http.NewRequestWithContext(ctx, method, "http://"+f.Server.String()+path, bytes.NewReader(body)) // Server is IPv4
	req.Header = header
	resp, err := f.transport.RoundTrip(req)
	if err != nil {
		return bounded.Error(fmt.Errorf("wire: %s %s: %w", method, req.URL, err))
	}
	defer resp.Body.Close()
	err = f.judge(path, resp)
	f.answers <- struct{}{}
	return bounded.Error(err)
}

// posting is called when a POST has a connection, and again if the server closed that
// before and net/http repeats the request.
func (f *flight) posting(httptrace.GotConnInfo) {
	if !f.Posted && f.r.BeforePost != nil {
		f.Posted = true
		f.r.BeforePost()
	}
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
