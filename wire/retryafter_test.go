package wire_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func TestRetryAfter(t *testing.T) {
	tests := []struct {
		name, value string
		want        time.Duration
	}{
		{"none", "", 0},
		{"seconds", "7", 7 * time.Second},
		{"zero", "0", 0},
		{"at the limit", "30", 30 * time.Second},
		{"over the limit", "120", 30 * time.Second},
		{"a day", "86400", 30 * time.Second},
		{"over a day", "86401", 30 * time.Second},
		{"a timestamp", "1767323045", 30 * time.Second},
		{"more than fits", "99999999999999999999", 0},
		{"negative", "-7", 0},
		{"signed", "+7", 0},
		{"fraction", "1.5", 0},
		{"text", "soon", 0},
		{"date", "Fri, 31 Dec 9999 23:59:59 GMT", 0}, // whatever the clock says
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{}
			header.Set("Retry-After", tt.value)
			if got := wire.RetryAfter(header); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7")
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		header := http.Header{"Retry-After": {value}}
		if got := wire.RetryAfter(header); got < 0 || got > 30*time.Second {
			t.Errorf("Retry-After %q: %s", value, got)
		}
	})
}
