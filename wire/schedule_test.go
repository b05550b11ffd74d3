package wire_test

import (
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func TestPause(t *testing.T) {
	tests := []struct {
		failures int
		elapsed  time.Duration
		want     time.Duration
	}{
		{1, 0, 250 * time.Millisecond},
		{2, 250 * time.Millisecond, 500 * time.Millisecond},
		{3, 750 * time.Millisecond, time.Second},
		{4, 1750 * time.Millisecond, time.Second},
		{300, 5*time.Minute - 1, time.Second},
		{300, 5 * time.Minute, 5 * time.Second},
		{1, 6 * time.Minute, 5 * time.Second}, // one slow failure
		{480, 20*time.Minute - 1, 5 * time.Second},
		{480, 20 * time.Minute, 30 * time.Second},
		{10000, 1000 * time.Hour, 30 * time.Second},
	}
	for _, tt := range tests {
		if got := wire.Pause(tt.failures, tt.elapsed); got != tt.want {
			t.Errorf("%d failures in %s: pause is %s, want %s", tt.failures, tt.elapsed, got, tt.want)
		}
	}
}

func TestJitter(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 10_000 {
		d := wire.Jitter(time.Second)
		low, high = min(low, d), max(high, d)
	}
	if low < 900*time.Millisecond || high > 1100*time.Millisecond {
		t.Errorf("1s became %s to %s, want within a tenth", low, high)
	}
	if low > 920*time.Millisecond || high < 1080*time.Millisecond {
		t.Errorf("1s became %s to %s only", low, high)
	}
}
