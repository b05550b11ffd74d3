package wire

import (
	"math/rand/v2"
	"time"
)

// The pauses between a failure and the next attempt. Most failures of a healthy
// host pass within a second, so the first retries come fast; an update of the
// host takes minutes; and whoever waits for the deployment gives up after 20 to
// 40 minutes, but the machine itself goes on running.
const (
	firstPause  = 250 * time.Millisecond
	secondPause = 500 * time.Millisecond
	earlyPause  = time.Second // until lateAfter
	latePause   = 5 * time.Second
	lateAfter   = 5 * time.Minute
	idlePause   = 30 * time.Second // after idleAfter
	idleAfter   = 20 * time.Minute
)

// pause returns how long to wait after so many failures, so long after the
// start, before jitter.
func pause(failures int, elapsed time.Duration) time.Duration {
	switch {
	case elapsed >= idleAfter:
		return idlePause
	case elapsed >= lateAfter:
		return latePause
	case failures <= 1:
		return firstPause
	case failures == 2:
		return secondPause
	}
	return earlyPause
}

// jitter changes d by up to a tenth, so that machines that were started
// together do not ask together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

// The patience with a request that is not answered, until a fresh attempt gets
// its chance. See loop.
const (
	firstPatience = 3 * time.Second
	maxPatience   = requestTimeout
)
