package wire_test

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// other is a second server's address.
var other = netip.MustParseAddr("100.115.176.3")

// trial is a Report in a bubble, and what was seen of it.
type trial struct {
	out    wire.Outcome
	err    error
	took   time.Duration
	failed []wire.Attempt
	at     []time.Duration // when each of failed did
}

// try reports Ready for at most the given time. The bubble's clock stands still
// except when all wait, so times are exact except for the jitter of the pauses.
func try(t *testing.T, r *wire.Reporter, limit time.Duration) trial {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var tr trial
	start := time.Now()
	r.OnAttempt = func(a wire.Attempt) {
		wantBounded(t, a.Err)
		tr.failed = append(tr.failed, a)
		tr.at = append(tr.at, time.Since(start))
	}
	tr.out, tr.err = r.Report(ctx, wire.Ready())
	tr.took = time.Since(start)
	if tr.err != nil {
		wantBounded(t, tr.err)
	}
	return tr
}

// wantBounded checks that an error's text can be written anywhere.
func wantBounded(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 512 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Errorf("error of %d bytes: %.600q", len(text), text)
	}
}

// near reports whether got is want, give or take a tenth of the pauses in it.
func near(got, want, pauses time.Duration) bool {
	return (got - want).Abs() <= pauses/10
}

const (
	ms  = time.Millisecond
	sec = time.Second
)

// each returns the steps one after the other.
func each(steps ...wiretest.Step) []wiretest.Step { return steps }
