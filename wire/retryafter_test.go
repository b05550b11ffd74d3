package wire_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
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
		{"date", at(9 * time.Second), 9 * time.Second},
		{"date over the limit", at(time.Hour), 30 * time.Second},
		{"date in the past", at(-time.Second), 0},
		{"date years ahead", at(50000 * time.Hour), 30 * time.Second},
		{"RFC 850", now.Add(9 * time.Second).Format(time.RFC850), 9 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{}
			header.Set("Retry-After", tt.value)
			if got := wire.RetryAfter(header, now); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7")
	f.Add("Fri, 02 Jan 2026 03:04:14 GMT")
	f.Add("Fri, 31 Dec 9999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		header := http.Header{"Retry-After": {value}}
		if got := wire.RetryAfter(header, time.Unix(0, 0)); got < 0 || got > 30*time.Second {
			t.Errorf("Retry-After %q: %s", value, got)
		}
	})
}
