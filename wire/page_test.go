package wire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// pages are 2xx answers that no WireServer gives, to no request.
var pages = map[string]wiretest.Step{
	"HTML":                   {Body: new("<html><body>sign in</body></html>")},
	"HTML5":                  {Body: new("\ufeff\r\n<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>")},
	"HTML in capitals":       {Body: new("<HTML><HEAD><TITLE>200</TITLE></HEAD></HTML>")},
	"HTML behind a comment":  {Body: new("<!-- proxy --><html></html>")},
	"XHTML":                  {Body: new(`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>`)},
	"fragment":               {Body: new("<h1>It works!</h1>")},
	"HTML by its type alone": {Body: new("<a/>"), Header: map[string]string{"Content-Type": "Text/HTML; charset=utf-8"}},
	"text/html":              {Body: new("<a/>"), Header: map[string]string{"Content-Type": "text/html"}},
	"text":                   {Body: new("OK")},
	"a number":               {Body: new("200")},
	"text like JSON":         {Body: new("[proxy] sign in")},
	"JSON cut short":         {Body: new(`{"state":`)},
	"XML in Latin-1":         {Body: new(`<?xml version="1.0" encoding="iso-8859-1"?><a/>`)},
	"60 kB":                  {Body: new(strings.Repeat("sign in ", 7500))},
	"8 MB":                   {BodyBytes: 8 << 20},
	"8 MB of XML":            {Body: new("<a>"), BodyBytes: 8 << 20},
	"no end":                 {Body: new("<a/>"), Withhold: 1},
	"chunked":                {Body: new("<html>"), Chunked: true},
	"201":                    {Body: new("<html>"), Status: 201},
	"body that never comes":  {BodyBytes: 9, Trickle: time.Hour},
	"body that never ends":   {BodyBytes: 100_000, Trickle: sec},
}

// answers are 2xx answers that can be the WireServer's to a report, but are no
// goal state.
var answers = map[string]wiretest.Step{
	"XML":             {Body: new(`<?xml version="1.0" encoding="utf-8"?><Health/>`)},
	"XML with prefix": {Body: new("\ufeff<w:Health xmlns:w='urn:x'/>")},
	"JSON":            {Body: new(` {"state":"Ready"}`)},
	"JSON list":       {Body: new("[]\n")},
}

// everywhere has all requests, or GET or POST alone, answered by the step.
func everywhere(method string, step wiretest.Step) (script wiretest.Script) {
	if step.Status == 0 {
		step.Status = 200
	}
	if method != "POST" {
		script.GoalState = each(step)
	}
	if method != "GET" {
		script.Health, script.Provisioning = each(step), each(step)
	}
	return script
}

// Where every report is answered by a page there is no Ready, whatever the
// goal state is; nor where something answers everything alike.
func TestPageForEver(t *testing.T) {
	check := func(name, method string, step wiretest.Step) {
		t.Run(name+"/"+method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				step.Times = -1
				n := newNetwork(t)
				n.serve(wire.DefaultAddr, everywhere(method, step))
				got := try(t, n.reporter(wire.DefaultAddr), time.Minute)
				if !errors.Is(got.err, context.DeadlineExceeded) {
					t.Errorf("accepted at attempt %d after %s, %v", got.out.N, got.took, got.err)
				}
			})
		})
	}
	for name, step := range pages {
		check(name, "POST", step)
		check(name, "all", step)
	}
	for name, step := range answers {
		check(name, "all", step)
	}
}

// Where only the goal state is a page, the JSON endpoint takes the report.
func TestPageInsteadOfGoalState(t *testing.T) {
	for _, reply := range []wiretest.Step{
		{},                                  // 201, empty
		{Status: 200},                       // as azure-init's test server
		{Status: 201, Body: new(`{"a":1}`)}, // 201 is the endpoint's own
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			n.serve(wire.DefaultAddr, wiretest.Script{
				GoalState:    each(wiretest.Step{Body: new("<html>sign in</html>"), Times: -1}),
				Provisioning: each(reply),
			})
			if got := try(t, n.reporter(wire.DefaultAddr), time.Hour); got.err != nil || got.out.N != 4 || got.out.Via != wire.ViaProvisioning {
				t.Errorf("%d: attempt %d, %s, %v; want 4", reply.Status, got.out.N, got.out.Via, got.err)
			}
		})
	}
}

// What can be the WireServer's answer to a report is accepted, at both endpoints.
func TestAnswers(t *testing.T) {
	for name, step := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				step.Status = 200
				n := newNetwork(t)
				n.serve(wire.DefaultAddr, wiretest.Script{Health: each(step)})
				if got := try(t, n.reporter(wire.DefaultAddr), time.Hour); got.err != nil || got.out.N != 1 {
					t.Errorf("health: attempt %d, %v", got.out.N, got.err)
				}
				n.serve(other, wiretest.Script{GoalState: each(wiretest.Step{Status: 404, Times: -1}), Provisioning: each(step)})
				if got := try(t, n.reporter(other), time.Hour); got.err != nil || got.out.N != 4 {
					t.Errorf("provisioning: attempt %d, %v", got.out.N, got.err)
				}
			})
		})
	}
}

// A page so many times: the report is accepted then, and not before.
func TestPageSometimes(t *testing.T) {
	for _, method := range []string{"GET", "POST", "all"} {
		for _, times := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprint(method, times), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(t)
					step := pages["HTML"]
					step.Times = times
					srv := n.serve(wire.DefaultAddr, everywhere(method, step))
					got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
					if got.err != nil {
						t.Fatal(got.err)
					}
					posts := map[string]int{}
					for _, q := range srv.Requests() {
						if q.Method == "POST" {
							posts[q.Path]++
						}
					}
					path := map[wire.Via]string{wire.ViaHealth: "/machine/?comp=health", wire.ViaProvisioning: "/provisioning/health"}[got.out.Via]
					want := times + 1
					if method == "GET" {
						want = 1
					}
					if posts[path] != want {
						t.Errorf("accepted by %s at POST %d, want %d", got.out.Via, posts[path], want)
					}
				})
			})
		}
	}
}

// A middlebox answers everything for a minute, then goes away.
func TestMiddleboxGoesAway(t *testing.T) {
	for name, step := range pages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				step.Times = -1
				n := newNetwork(t)
				n.serve(wire.DefaultAddr, everywhere("all", step))
				real := make(chan *wiretest.Server, 1)
				time.AfterFunc(time.Minute, func() { real <- n.serve(wire.DefaultAddr, wiretest.Script{}) })
				got := try(t, n.reporter(wire.DefaultAddr), time.Hour)
				if got.err != nil || got.took < time.Minute {
					t.Fatalf("accepted after %s, %v", got.took, got.err)
				}
				// An attempt that began before can hang until it is cancelled.
				if limit := 62 * sec; got.took > limit && step.Trickle == 0 || got.took > 2*time.Minute {
					t.Errorf("accepted after %s", got.took)
				}
				if last := (<-real).Requests(); len(last) == 0 || last[len(last)-1].Status/100 != 2 {
					t.Errorf("requests at the WireServer: %v", last)
				}
			})
		})
	}
}

// What is known of a middlebox is not kept between two processes, and need not be: each
// requests the goal state three times before it uses the JSON endpoint.
func TestMiddleboxAfterRestart(t *testing.T) {
	for name, step := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				step.Times = -1
				n := newNetwork(t)
				srv := n.serve(wire.DefaultAddr, everywhere("all", step))
				for range 3 { // processes
					before := len(srv.Requests())
					if got := try(t, n.reporter(wire.DefaultAddr), 10*sec); got.err == nil {
						t.Errorf("accepted at attempt %d", got.out.N)
					}
					requests := srv.Requests()[before:]
					first := slices.IndexFunc(requests, func(q wiretest.Request) bool { return q.Method == "POST" })
					if first != 3 {
						t.Errorf("the first POST is request %d", first+1)
					}
				}
			})
		})
	}
}
