package wire

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// pause returns how long to wait after a number of failures, at a time after the
// start, before jitter. Most failures of a healthy host pass within a second; an
// update of the host takes minutes; the deployment fails after 20 to 40 minutes, but
// the machine continues running.
func pause(failures int, elapsed time.Duration) time.Duration {
	switch {
	case elapsed >= 20*time.Minute:
		return 30 * time.Second
	case elapsed >= 5*time.Minute:
		return 5 * time.Second
	case failures <= 1:
		return 250 * time.Millisecond
	case failures == 2:
		return 500 * time.Millisecond
	}
	return time.Second
}

// jitter changes d by up to a tenth, so that machines that were started
// together do not send requests at the same time.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

// How long to wait for an answer before another attempt starts. See loop.
const (
	firstPatience = 3 * time.Second
	maxPatience   = requestTimeout
)

const maxRetryAfter = 30 * time.Second // longer values are cut to this

// retryAfter parses the Retry-After header (RFC 9110, 10.2.3): seconds, or a date. It
// returns zero for a header that is missing or unusable.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
