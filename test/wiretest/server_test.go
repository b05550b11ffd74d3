package wiretest_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// serve plays the script on loopback, until the test ends.
func serve(t *testing.T, script wiretest.Script) (url string, srv *wiretest.Server) {
	t.Helper()
	srv = wiretest.New(script)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return "http://" + l.Addr().String(), srv
}

// ask makes a request and returns status and body; 0 and the error's text if
// there was none.
func ask(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	return askFor(t, 10*time.Second, method, url, body, header...)
}

// askFor is ask with little patience, for a step that takes for ever.
func askFor(t *testing.T, limit time.Duration, method, url, body string, header ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(got)
}

const (
	pathGoalState    = "/machine/?comp=goalstate"
	pathHealth       = "/machine/?comp=health"
	pathProvisioning = "/provisioning/health"
)

var version = []string{"x-ms-version", "2012-11-30"}

// health is a report, as agents send it that leave out all they may.
func health(incarnation, container, instance, rest string) string {
	return "<Health><GoalStateIncarnation>" + incarnation + "</GoalStateIncarnation><Container><ContainerId>" + container +
		"</ContainerId><RoleInstanceList><Role><InstanceId>" + instance + "</InstanceId><Health>" + rest +
		"</Health></Role></RoleInstanceList></Container></Health>"
}

// Without a script the server refuses what the real one does.
func TestWellBehaved(t *testing.T) {
	const ready = "<State>Ready</State>"
	script := wiretest.Script{GoalStates: []wiretest.GoalState{{Incarnation: "3", ContainerID: "c", InstanceID: "R&D"}}}
	url, _ := serve(t, script)
	tests := []struct {
		name, method, path, body string
		header                   []string
		want                     int
	}{
		{"goal state", "GET", pathGoalState, "", version, 200},
		{"goal state, other spelling", "GET", "/machine?comp=goalstate", "", version, 200},
		{"goal state without version", "GET", pathGoalState, "", nil, 400},
		{"versions", "GET", "/?comp=versions", "", nil, 200},
		{"health", "POST", pathHealth, health("3", "c", "R&amp;D", ready), version, 200},
		{"health, other spelling", "POST", "/machine?comp=health", health("3", "c", "R&amp;D", ready), version, 200},
		{"health without version", "POST", pathHealth, health("3", "c", "R&amp;D", ready), nil, 400},
		{"health, stale incarnation", "POST", pathHealth, health("1", "c", "R&amp;D", ready), version, 410},
		{"health, other container", "POST", pathHealth, health("3", "d", "R&amp;D", ready), version, 400},
		{"health, other instance", "POST", pathHealth, health("3", "c", "R", ready), version, 400},
		{"health, not escaped", "POST", pathHealth, health("3", "c", "R&D", ready), version, 400},
		{"health, unknown state", "POST", pathHealth, health("3", "c", "R&amp;D", "<State>Fine</State>"), version, 400},
		{"health, empty", "POST", pathHealth, "", version, 400},
		{"health, other root", "POST", pathHealth, "<GoalState/>", version, 400},
		{
			"failure", "POST", pathHealth,
			health("3", "c", "R&amp;D", "<State>NotReady</State><Details><SubStatus>ProvisioningFailed</SubStatus><Description>no disk</Description></Details>"),
			version, 200,
		},
		{
			"failure, long description", "POST", pathHealth,
			health("3", "c", "R&amp;D", "<State>NotReady</State><Details><Description>"+strings.Repeat("x", 4097)+"</Description></Details>"),
			version, 500,
		},
		{"provisioning", "POST", pathProvisioning, `{"state":"Ready"}`, nil, 201},
		{"provisioning, unknown state", "POST", pathProvisioning, `{"state":"Fine"}`, nil, 400},
		{"provisioning, no JSON", "POST", pathProvisioning, "Ready", nil, 400},
		{"other path", "GET", "/", "", version, 404},
		{"other method", "PUT", pathHealth, "", version, 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, body := ask(t, tt.method, url+tt.path, tt.body, tt.header...); got != tt.want {
				t.Errorf("got %d %s, want %d", got, body, tt.want)
			}
		})
	}
	_, doc := ask(t, "GET", url+pathGoalState, "", version...)
	for _, want := range []string{"<Incarnation>3</Incarnation>", "<ContainerId>c</ContainerId>", "<InstanceId>R&amp;D</InstanceId>"} {
		if !strings.Contains(doc, want) {
			t.Errorf("goal state has no %s:\n%s", want, doc)
		}
	}
}

// What the client of net/http makes of each step.
func TestSteps(t *testing.T) {
	tests := []struct {
		name   string
		step   wiretest.Step
		status int
		body   string
	}{
		{"status", wiretest.Step{Status: 503}, 503, ""},
		{"status with body", wiretest.Step{Status: 503, Body: new("busy")}, 503, "busy"},
		{"body", wiretest.Step{Body: new("$INCARNATION")}, 201, wiretest.DefaultGoalState.Incarnation},
		{"header", wiretest.Step{Header: map[string]string{"Content-Length": "2"}, Body: new("ok")}, 201, "ok"},
		{"chunked", wiretest.Step{Chunked: true, BodyBytes: 250}, 201, strings.Repeat(".", 250)},
		{"chunked, trickling", wiretest.Step{Chunked: true, Trickle: 1, Body: new("ok")}, 201, "ok"},
		{"chunked, empty", wiretest.Step{Chunked: true}, 201, ""},
		{"HTTP/1.0", wiretest.Step{HTTP10: true, Body: new("ok")}, 201, "ok"},
		{"informational", wiretest.Step{Informational: []int{100, 103}, Body: new("ok")}, 201, "ok"},
		{"filler", wiretest.Step{Body: new("ok"), BodyBytes: 4}, 201, "ok.."},
		{"long header", wiretest.Step{HeaderBytes: 100_000}, 201, ""},
		{"withheld", wiretest.Step{Body: new("ok"), Withhold: 1}, 201, "unexpected EOF"},
		{"withheld, chunked", wiretest.Step{Body: new("ok"), Withhold: 1, Chunked: true}, 201, "unexpected EOF"},
		{"withheld, HTTP/1.0", wiretest.Step{Body: new("ok"), Withhold: 1, HTTP10: true}, 201, "o"},
		{"delay", wiretest.Step{Delay: time.Hour}, 0, "context deadline exceeded"},
		{"trickle", wiretest.Step{Body: new("ok"), Trickle: time.Hour}, 201, "context deadline exceeded"},
		{"hang", wiretest.Step{Hang: true}, 0, "context deadline exceeded"},
		{"reset", wiretest.Step{Reset: true}, 0, "read: connection reset by peer"},
		{"close", wiretest.Step{Close: true}, 0, "EOF"},
		{"raw", wiretest.Step{Raw: new("HTTP/1.1 299 X\r\n\r\nraw")}, 299, "raw"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := serve(t, wiretest.Script{Provisioning: []wiretest.Step{tt.step}})
			limit := 10 * time.Second
			if strings.Contains(tt.body, "deadline") {
				limit = 100 * time.Millisecond
			}
			status, body := askFor(t, limit, "POST", url+pathProvisioning, `{"state":"Ready"}`)
			if status != tt.status || !strings.HasSuffix(body, tt.body) {
				t.Errorf("got %d %q, want %d %q", status, body, tt.status, tt.body)
			}
			if status, body := ask(t, "POST", url+pathProvisioning, `{"state":"Ready"}`); status != 201 || body != "" {
				t.Errorf("then got %d %q, want 201", status, body)
			}
		})
	}
}

// A script is played in order, and what was decided on is noted.
func TestScript(t *testing.T) {
	url, srv := serve(t, wiretest.Script{
		GoalStates: []wiretest.GoalState{
			{Incarnation: "1", ContainerID: "c", InstanceID: "i"},
			{Incarnation: "2", ContainerID: "c", InstanceID: "i"},
		},
		GoalState: []wiretest.Step{{Times: 2, Status: 503}, {Advance: true}, {Times: -1, Status: 404}},
		Health:    []wiretest.Step{{Delay: time.Millisecond}, {Close: true}},
	})
	get := func() int { status, _ := ask(t, "GET", url+pathGoalState, "", version...); return status }
	post := func(incarnation string) int {
		status, _ := ask(t, "POST", url+pathHealth, health(incarnation, "c", "i", "<State>Ready</State>"), version...)
		return status
	}
	got := []int{get(), get(), get(), post("1"), post("2"), post("2"), get(), get()}
	if diff := cmp.Diff([]int{503, 503, 200, 410, 0, 200, 404, 404}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	var noted []int
	for _, q := range srv.Requests() {
		noted = append(noted, q.Status)
	}
	if diff := cmp.Diff(got, noted); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// What is noted of a request is the whole of it.
func TestRequests(t *testing.T) {
	url, srv := serve(t, wiretest.Script{})
	before := time.Now().UnixNano()
	ask(t, "POST", url+pathProvisioning+"?a=b", "body", "X-A", "1")
	after := time.Now().UnixNano()
	got := srv.Requests()
	want := []wiretest.Request{{
		Conn: 1, Method: "POST", Path: "/provisioning/health?a=b", Body: "body", Status: 404,
		Header: http.Header{
			"Accept-Encoding": {"gzip"}, "Content-Length": {"4"}, "Host": {strings.TrimPrefix(url, "http://")},
			"User-Agent": {"Go-http-client/1.1"}, "X-A": {"1"},
		},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(wiretest.Request{}, "UnixNano")); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if at := got[0].UnixNano; at < before || at > after {
		t.Errorf("noted at %d, asked between %d and %d", at, before, after)
	}
}

// One server can answer at two addresses: an address and its fallback.
func TestTwoListeners(t *testing.T) {
	srv := wiretest.New(wiretest.Script{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for range 2 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- srv.Serve(ctx, l) }()
		ask(t, "GET", "http://"+l.Addr().String()+pathGoalState, "", version...)
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := len(srv.Requests()); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}

// A listener that fails is the caller's to know of.
func TestServeError(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := wiretest.New(wiretest.Script{}).Serve(t.Context(), l); err == nil {
		t.Error("no error")
	}
}
