package wire_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// BeforePost comes before each POST, and before no GET.
func TestBeforePost(t *testing.T) {
	r, srv := serve(t, wiretest.Script{
		GoalState: []wiretest.Step{{Status: 503}}, Health: []wiretest.Step{{Status: 410}},
	})
	var calls atomic.Int32
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
