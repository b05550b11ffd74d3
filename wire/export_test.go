package wire

import (
	"context"
	"net"
	"net/http"
	"time"
)

// What the tests, which are a package of their own, need of the inside.

// SetDial replaces the network: there is none in a synctest bubble.
func (r *Reporter) SetDial(dial func(ctx context.Context, device, address string) (net.Conn, error)) {
	r.dial = dial
}

// Variation is variations and jsonFrom.
func Variation(n int) (provisioning, fallback, bound bool) {
	v := variations[(n-1)%len(variations)]
	return v.via == ViaProvisioning && n >= jsonFrom, v.fallback, v.bound
}

// Pause is pause.
func Pause(failures int, elapsed time.Duration) time.Duration { return pause(failures, elapsed) }

// Jitter is jitter.
func Jitter(d time.Duration) time.Duration { return jitter(d) }

// RetryAfter is retryAfter.
func RetryAfter(header http.Header) time.Duration { return retryAfter(header) }

// ParseGoalState is parseGoalState.
func ParseGoalState(body []byte) (GoalState, error) { return parseGoalState(body) }

// DialTCP is dialTCP.
func DialTCP(ctx context.Context, device, address string) (net.Conn, error) {
	return dialTCP(ctx, device, address)
}
