package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// TestMain puts a proxy into the environment before net/http looks there, which
// it does once in a process.
func TestMain(m *testing.M) {
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"} {
		os.Setenv(name, "http://10.0.0.1:3128")
	}
	os.Unsetenv("no_proxy")
	os.Unsetenv("REQUEST_METHOD") // with it net/http would not look
	os.Exit(m.Run())
}

// serve plays the script on loopback, over real TCP, and returns a Reporter for
// it.
func serve(t *testing.T, script wiretest.Script) (*wire.Reporter, *wiretest.Server) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := wiretest.New(script)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	at := netip.MustParseAddrPort(l.Addr().String())
	r := &wire.Reporter{Server: at.Addr(), UserAgent: "nm-azure-dispatch/0.1.0"}
	// A server on loopback cannot have port 80.
	r.SetDial(func(ctx context.Context, device, _ string) (net.Conn, error) {
		return wire.DialTCP(ctx, device, at.String())
	})
	return r, srv
}

// report reports Ready for at most the given time, and checks that nothing
// of the package runs on.
func report(t *testing.T, r *wire.Reporter, limit time.Duration) (wire.Outcome, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := r.Report(ctx, wire.Ready())
	if stack := leftover(); stack != nil {
		t.Errorf("an attempt is still running:\n%s", stack)
	}
	return out, err
}

// leftover returns the stack of an attempt's goroutine, nil for none. One that
// Report has waited for may have its last instruction before it: that is given
// a moment. (synctest makes sure in the other tests that none is left, neither of
// this package nor of net/http.)
func leftover() []byte {
	stacks := make([]byte, 1<<20)
	var found []byte
	for range 100 {
		found = nil
		for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
			if bytes.Contains(stack, []byte("wire.(*flight).start")) {
				found = stack
			}
		}
		if found == nil {
			break
		}
		runtime.Gosched()
	}
	return found
}

// The requests are what the documentation asks for, on one connection.
func TestRequests(t *testing.T) {
	r, srv := serve(t, wiretest.Script{})
	out, err := report(t, r, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	gs := wire.GoalState(wiretest.DefaultGoalState)
	wantOutcome := wire.Outcome{Attempt: wire.Attempt{N: 1, Server: r.Server, Via: wire.ViaHealth, GoalState: gs}, Attempts: 1}
	if diff := cmp.Diff(wantOutcome, out, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	got := srv.Requests()
	body := wire.Ready().XML(gs)
	want := []wiretest.Request{
		{
			Conn: 1, Method: "GET", Path: "/machine/?comp=goalstate", Status: 200,
			Header: http.Header{
				"Host":            {"127.0.0.1"},
				"User-Agent":      {"nm-azure-dispatch/0.1.0"},
				"X-Ms-Agent-Name": {"nm-azure-dispatch"},
				"X-Ms-Version":    {"2012-11-30"},
			},
		},
		{
			Conn: 1, Method: "POST", Path: "/machine/?comp=health", Status: 200, Body: string(body),
			Header: http.Header{
				"Content-Length":  {fmt.Sprint(len(body))},
				"Content-Type":    {"text/xml; charset=utf-8"},
				"Host":            {"127.0.0.1"},
				"User-Agent":      {"nm-azure-dispatch/0.1.0"},
				"X-Ms-Agent-Name": {"nm-azure-dispatch"},
				"X-Ms-Version":    {"2012-11-30"},
			},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(wiretest.Request{}, "UnixNano")); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The JSON endpoint takes one request, without a goal state.
func TestRequestsProvisioning(t *testing.T) {
	r, srv := serve(t, wiretest.Script{GoalState: each(wiretest.Step{Status: 404, Times: -1})})
	r.UserAgent = ""
	out, err := report(t, r, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome := wire.Outcome{Attempt: wire.Attempt{N: 4, Server: r.Server, Via: wire.ViaProvisioning}, Attempts: 4}
	if diff := cmp.Diff(wantOutcome, out, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	got := srv.Requests()
	want := wiretest.Request{
		Conn: 4, Method: "POST", Path: "/provisioning/health", Status: 201, Body: `{"state":"Ready"}`,
		Header: http.Header{
			"Content-Length":        {"17"},
			"Content-Type":          {"application/json"},
			"Host":                  {"127.0.0.1"},
			"User-Agent":            {"nm-azure-dispatch"},
			"X-Ms-Guest-Agent-Name": {"nm-azure-dispatch"},
		},
	}
	if diff := cmp.Diff(want, got[len(got)-1], cmpopts.IgnoreFields(wiretest.Request{}, "UnixNano")); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// What a connection can do that is still HTTP: one attempt is enough.
func TestHTTP(t *testing.T) {
	tests := []struct {
		name  string
		step  wiretest.Step // of both requests
		conns int
	}{
		{"plain", wiretest.Step{}, 1},
		{"chunked", wiretest.Step{Chunked: true}, 1},
		{"informational answers", wiretest.Step{Informational: []int{100, 102, 103, 100}}, 1},
		{"HTTP/1.0", wiretest.Step{HTTP10: true}, 2},
		{"Connection: close", wiretest.Step{Header: map[string]string{"Connection": "close"}, CloseAfter: true}, 2},
		{"other 2xx", wiretest.Step{Status: 202}, 1},
		{"late", wiretest.Step{Delay: 50 * time.Millisecond}, 1},
		{"slow", wiretest.Step{Trickle: 10 * time.Microsecond}, 1},
		{"compression claimed by nobody", wiretest.Step{Header: map[string]string{"Vary": "Accept-Encoding"}}, 1},
		{"cookie", wiretest.Step{Header: map[string]string{"Set-Cookie": "a=b"}}, 1},
		{"long header", wiretest.Step{HeaderBytes: 60 << 10}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, srv := serve(t, wiretest.Script{GoalState: each(tt.step), Health: each(tt.step)})
			out, err := report(t, r, 10*time.Second)
			if err != nil || out.Attempts != 1 {
				t.Fatalf("%d attempts, %v", out.Attempts, err)
			}
			requests := srv.Requests()
			if got := requests[len(requests)-1].Conn; got != tt.conns {
				t.Errorf("%d connections, want %d", got, tt.conns)
			}
			for _, q := range requests {
				for _, name := range []string{"Accept-Encoding", "Cookie", "Connection"} {
					if value, ok := q.Header[name]; ok {
						t.Errorf("%s %s: %s is %q", q.Method, q.Path, name, value)
					}
				}
			}
		})
	}
}

// What a connection can do that is not, on real TCP. Each costs one attempt.
func TestAttemptErrors(t *testing.T) {
	const goalState = "wire: GET http://SERVER/machine/?comp=goalstate: "
	tests := []struct {
		name   string
		script wiretest.Script
		want   string
	}{
		{
			"reset",
			wiretest.Script{GoalState: each(wiretest.Step{Reset: true})},
			goalState + "read tcp4 CLIENT->LISTENER: read: connection reset by peer",
		},
		{
			"closed",
			wiretest.Script{GoalState: each(wiretest.Step{Close: true})},
			goalState + "EOF",
		},
		{
			"health reset",
			wiretest.Script{Health: each(wiretest.Step{Reset: true})},
			"wire: POST http://SERVER/machine/?comp=health: read tcp4 CLIENT->LISTENER: read: connection reset by peer",
		},
		{
			"body cut short",
			wiretest.Script{GoalState: each(wiretest.Step{Withhold: 1})},
			"wire: goal state: unexpected EOF",
		},
		{
			"100 MB",
			wiretest.Script{GoalState: each(wiretest.Step{BodyBytes: 100_000_000})},
			"wire: goal state: longer than the limit of 16384 bytes",
		},
		{
			"100 MB, chunked",
			wiretest.Script{GoalState: each(wiretest.Step{BodyBytes: 100_000_000, Chunked: true})},
			"wire: goal state: longer than the limit of 16384 bytes",
		},
		{
			"long header",
			wiretest.Script{GoalState: each(wiretest.Step{HeaderBytes: 1 << 20})},
			goalState + "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted",
		},
		{
			"endless informational answers",
			wiretest.Script{GoalState: each(wiretest.Step{Raw: new(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 10000))})},
			goalState + "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted",
		},
		{
			"no HTTP",
			wiretest.Script{GoalState: each(wiretest.Step{Raw: new("SSH-2.0-OpenSSH_9.9\r\n")})},
			goalState + `net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-OpenSSH_9.9"`,
		},
		{
			"redirect",
			wiretest.Script{GoalState: each(wiretest.Step{Status: 302, Header: map[string]string{"Location": "/?comp=versions"}})},
			`wire: http://SERVER/machine/?comp=goalstate: 302 Found: ""`,
		},
		{
			"health redirected",
			wiretest.Script{Health: each(wiretest.Step{Status: 302, Header: map[string]string{"Location": "/?comp=versions"}})},
			`wire: http://SERVER/machine/?comp=health: 302 Found: ""`,
		},
		{
			"other protocol",
			wiretest.Script{GoalState: each(wiretest.Step{Status: 101, Header: map[string]string{"Upgrade": "h2c", "Connection": "Upgrade"}})},
			`wire: http://SERVER/machine/?comp=goalstate: 101 Switching Protocols: ""`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, srv := serve(t, tt.script)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var failed []string
			r.OnAttempt = func(a wire.Attempt) {
				wantBounded(t, a.Err)
				failed = append(failed, withoutPort(a.Err))
				cancel() // the faults of the other tests show that another attempt follows
			}
			_, err := r.Report(ctx, wire.Ready())
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the cancellation", err)
			}
			want := strings.ReplaceAll(tt.want, "SERVER", "127.0.0.1")
			if diff := cmp.Diff([]string{want}, failed); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			for _, q := range srv.Requests() {
				if q.Path == "/?comp=versions" {
					t.Error("a redirect was followed")
				}
			}
		})
	}
}

// withoutPort is err's text, less the ports, which differ each time.
func withoutPort(err error) string {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Source == nil {
		return text(err)
	}
	return strings.NewReplacer(op.Source.String(), "CLIENT", op.Addr.String(), "LISTENER").Replace(text(err))
}

// A request that hangs is given up with the context, at once.
func TestReportCancelled(t *testing.T) {
	r, srv := serve(t, wiretest.Script{Health: each(wiretest.Step{Hang: true, Times: -1})})
	out, err := report(t, r, time.Second) // less than the 3 s of patience
	if !errors.Is(err, context.DeadlineExceeded) || out.Attempts != 1 {
		t.Errorf("%d attempts, %v", out.Attempts, err)
	}
	if got := len(srv.Requests()); got != 2 {
		t.Errorf("%d requests, want the goal state and health", got)
	}
}

func TestFetchGoalState(t *testing.T) {
	r, srv := serve(t, wiretest.Script{GoalState: each(wiretest.Step{Times: 1}, wiretest.Step{Status: 503, Times: -1})})
	got, err := r.FetchGoalState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wire.GoalState(wiretest.DefaultGoalState), got); diff != "" {
		t.Errorf("goal state (-want +got):\n%s", diff)
	}
	_, err = r.FetchGoalState(t.Context())
	if status, ok := errors.AsType[*wire.StatusError](err); !ok || status.Code != 503 {
		t.Errorf("got %v, want a StatusError with 503", err)
	}
	if got := len(srv.Requests()); got != 2 {
		t.Errorf("%d requests; it asks once each time", got)
	}
}

// A proxy in the environment is not asked: TestMain has set one for all tests.
// net/http never asks one for loopback, so the proof needs the real address, and
// with it a network in memory.
func TestNoProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve(wire.DefaultAddr, wiretest.Script{})
		if got := try(t, n.reporter(wire.DefaultAddr), time.Second); got.err != nil {
			t.Error(got.err)
		}
		if to := n.dials[0].To; to != "168.63.129.16:80" {
			t.Errorf("dialled %s", to)
		}
	})
}

// A connection can be bound to a device, and a device that does not exist is
// named.
func TestDialBound(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	c, err := wire.DialTCP(t.Context(), "lo", address)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	_, err = wire.DialTCP(t.Context(), "nosuchdevice0", address)
	want := fmt.Sprintf("dial tcp4 %s: bind to nosuchdevice0 tcp4: no such device", address)
	if diff := cmp.Diff(want, text(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
