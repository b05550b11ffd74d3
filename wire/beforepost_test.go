package wire_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// BeforePost comes before each POST, and before no GET.
func TestBeforePost(t *testing.T) {
	r, srv := serve(t, wiretest.Script{
		GoalState: []wiretest.Step{{Status: 503}}, Health: []wiretest.Step{{Status: 410}},
	})
	var calls atomic.Int32
	r.OnAttempt = func(a wire.Attempt) {
		if a.Posted != (calls.Load() > 0) {
			t.Errorf("attempt %d: posted %v after %d calls: %v", a.N, a.Posted, calls.Load(), a.Err)
		}
	}
	r.BeforePost = func() {
		posts := int32(0)
		for _, q := range srv.Requests() {
			if q.Method == "POST" {
				posts++
			}
		}
		if posts != calls.Load() {
			t.Errorf("%d POSTs before call %d", posts, calls.Load()+1)
		}
		calls.Add(1)
	}
	if _, err := report(t, r, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 2 {
		t.Errorf("%d calls, want 2: one refused, one accepted", calls.Load())
	}
}

// A POST for which there is no connection is not under way.
func TestBeforePostConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lose(wire.DefaultAddr, time.Hour)
		r := n.reporter(wire.DefaultAddr)
		var calls atomic.Int32
		r.BeforePost = func() { calls.Add(1) }
		got := try(t, r, time.Minute)
		for _, a := range got.failed {
			if a.Posted {
				t.Errorf("attempt %d was posted", a.N)
			}
		}
		if len(got.failed) < 8 || calls.Load() != 0 { // half of them from the fourth on are POSTs
			t.Errorf("%d calls in %d attempts that did not connect", calls.Load(), len(got.failed))
		}
		for _, f := range got.failed {
			if f.Posted {
				t.Errorf("attempt %d posted without a connection", f.N)
			}
		}
	})
}

// BeforePost is called once for each attempt that posted, however it ends: the caller
// counts the POSTs under way.
func TestPosted(t *testing.T) {
	tests := map[string]wiretest.Script{
		"no goal state":  {GoalState: each(wiretest.Step{Status: 503, Times: -1}), Provisioning: each(wiretest.Step{Status: 503, Times: -1})},
		"health refused": {Health: each(wiretest.Step{Status: 410, Times: -1}), Provisioning: each(wiretest.Step{Reset: true, Times: -1})},
		"connection closed behind it": {
			GoalState: each(wiretest.Step{CloseAfter: true, Times: -1}),
			Health:    each(wiretest.Step{Status: 503, Times: -1}), Provisioning: each(wiretest.Step{Status: 503, Times: -1}),
		},
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve(wire.DefaultAddr, script)
				r := n.reporter(wire.DefaultAddr)
				var calls, posted atomic.Int32
				r.BeforePost = func() { calls.Add(1) }
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				r.OnAttempt = func(a wire.Attempt) {
					if a.Posted {
						posted.Add(1)
					}
					if a.N == 4 { // the first at the JSON endpoint
						stop()
					}
				}
				if _, err := r.Report(ctx, wire.Ready()); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if calls.Load() != posted.Load() || posted.Load() == 0 {
					t.Errorf("%d calls, %d attempts posted", calls.Load(), posted.Load())
				}
			})
		})
	}
}

// The server closes the connection when a POST is about to be written to it, and net/http repeats the request on another:
// that is one POST.
func TestPostRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		conns := make(chan net.Conn)
		n.hosts[wire.DefaultAddr.String()+":80"] = conns
		go func() {
			first := <-conns
			_, _ = http.ReadRequest(bufio.NewReader(first))
			_, _ = fmt.Fprintf(first, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(minimal), minimal)
			time.Sleep(time.Millisecond) // until the client waits for the POST to be read
			_ = first.Close()
			second := <-conns
			if req, err := http.ReadRequest(bufio.NewReader(second)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			_, _ = io.WriteString(second, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}()
		r := n.reporter(wire.DefaultAddr)
		var calls atomic.Int32
		r.BeforePost = func() { calls.Add(1) }
		out, err := r.Report(t.Context(), wire.Ready())
		if err != nil || out.N != 1 || len(n.dials) != 2 || calls.Load() != 1 {
			t.Errorf("accepted at attempt %d, %v, with %d connections and %d calls; want 1, nil, 2, 1", out.N, err, len(n.dials), calls.Load())
		}
	})
}
