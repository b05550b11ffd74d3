package wire_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Whatever a server sends, wherever in its answer: no error has more than 512
// bytes, and all are printable. try checks each.
func TestGarbage(t *testing.T) {
	garbage := map[string]string{
		"controls":  strings.Repeat("\x1b]0;\x07\x00", 12_000),
		"not UTF-8": strings.Repeat("\xff\xfe", 30_000),
		"quotes":    strings.Repeat(`"`, 60_000),
		"long":      strings.Repeat("x", 60_000),
		"long tag":  "<" + strings.Repeat("x", 8_000) + ">",
		"end tag":   "<GoalState></" + strings.Repeat("x", 8_000) + ">",
		"entity":    "<GoalState>&" + strings.Repeat("x", 8_000) + ";</GoalState>",
		"encoding":  `<?xml version="1.0" encoding="` + strings.Repeat("x", 8_000) + `"?><GoalState/>`,
		"version":   `<?xml version="` + strings.Repeat("x", 8_000) + `"?><GoalState/>`,
		"doctype":   "<!DOCTYPE " + strings.Repeat("\u202e", 2_000) + ">",
		"id":        strings.Replace(minimal, ">1<", ">"+strings.Repeat("\u0085", 128)+"<", 1),
		"number":    strings.Replace(minimal, ">1<", ">"+strings.Repeat("\u202e", 80)+"<", 1),
	}
	for name, g := range garbage {
		line := strings.NewReplacer("\r", " ", "\n", " ").Replace(g)
		for at, step := range map[string]wiretest.Step{
			"answer":         {Raw: &g},
			"status line":    {Raw: new("HTTP/1.1 " + line + "\r\n\r\n")},
			"reason":         {Raw: new("HTTP/1.1 503 " + line + "\r\n\r\n")},
			"header's line":  {Raw: new("HTTP/1.1 200 OK\r\n" + line + "\r\n\r\n")},
			"header's value": {Raw: new("HTTP/1.1 200 OK\r\nContent-Type: " + line + "\r\nContent-Length: " + line + "\r\n\r\n")},
			"chunk":          {Raw: new("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + line)},
			"error's body":   {Status: 500, Body: &g},
			"body":           {Body: &g, Status: 200},
		} {
			t.Run(name+"/"+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					step.Times = -1
					n := newNetwork(t)
					n.serve(wire.DefaultAddr, wiretest.Script{GoalState: each(step), Provisioning: each(step)})
					if got := try(t, n.reporter(wire.DefaultAddr), 5*sec); got.err == nil || len(got.failed) < 4 {
						t.Errorf("%d failures, %v", len(got.failed), got.err)
					}
					n.serve(other, wiretest.Script{Health: each(step), Provisioning: each(step)})
					try(t, n.reporter(other), 5*sec) // some of it is XML, as far as it is looked at
				})
			})
		}
	}
}

// What the caller gives can be in an error too.
func TestBounded(t *testing.T) {
	long := strings.Repeat("\n", 60_000)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New(long))
	_, err := (&wire.Reporter{Server: wire.DefaultAddr}).Report(ctx, wire.Ready())
	wantBounded(t, err)
	wantBounded(t, wire.CheckAddr(netip.MustParseAddr("fe80::1").WithZone(long)))
	wantBounded(t, &wire.StatusError{URL: "http://" + long, Body: long, RetryAfter: time.Second})
}
