package wire

import (
	"net/http"
	"strconv"
	"time"
)

const (
	// maxRetryAfter bounds what a server may ask for: more than this is waited
	// only that long, since a host that is being updated cannot know better.
	maxRetryAfter = 30 * time.Second
	// absurdRetryAfter is where a value is a mistake (a clock that jumped, a
	// timestamp in place of seconds) and says nothing at all.
	absurdRetryAfter = 24 * time.Hour
)

// retryAfter reads the Retry-After header (RFC 9110, 10.2.3): a number of
// seconds, or a date. A date is compared with the answer's own Date, if it has
// one, because the machine's clock may not be set yet. It returns zero for no
// header, for one that cannot be read, and for one that is negative or absurd;
// else at most 30 s.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		if date, err := http.ParseTime(header.Get("Date")); err == nil {
			now = date
		}
		wait = at.Sub(now)
	}
	if wait < 0 || wait > absurdRetryAfter {
		return 0
	}
	return min(wait, maxRetryAfter)
}
