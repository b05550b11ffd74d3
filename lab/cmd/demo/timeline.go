package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// moment is a line of the timeline.
type moment struct {
	at   time.Time
	who  string
	what string
}

// timeline prints all that was logged since a time, in order.
func timeline(ctx context.Context, l *lab.Lab, since time.Time) error {
	var all []moment
	for _, collect := range []func(context.Context, *lab.Lab) ([]moment, error){leases, events, requests, queries, entries} {
		more, err := collect(ctx, l)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for _, m := range all {
		if m.at.Before(since) {
			continue
		}
		fmt.Printf("  %8.3f s  %-11s %s\n", m.at.Sub(since).Seconds(), m.who, m.what)
	}
	return nil
}

func leases(ctx context.Context, l *lab.Lab) (out []moment, err error) {
	log, err := l.Cloud.DHCPLog(ctx)
	for _, m := range log {
		what := m.Type
		if m.Addr.IsValid() {
			what += " " + m.Addr.String()
		}
		out = append(out, moment{m.Time, "DHCP", what})
	}
	return out, err
}

func events(_ context.Context, l *lab.Lab) (out []moment, err error) {
	log, err := l.Guest.Events()
	for _, e := range log {
		if e.Iface != "eth0" {
			continue
		}
		out = append(out, moment{e.Began, "dispatcher", fmt.Sprintf("%s %s, scripts took %.0f ms", e.Iface, e.Action, e.Ended.Sub(e.Began).Seconds()*1000)})
	}
	return out, err
}

// requests have their latency from the event before them.
func requests(ctx context.Context, l *lab.Lab) (out []moment, err error) {
	log, err := l.Cloud.Requests(ctx)
	if err != nil {
		return nil, err
	}
	evs, err := l.Guest.Events()
	for _, r := range log {
		at := time.Unix(0, r.UnixNano)
		what := fmt.Sprintf("%s %s -> %d", r.Method, r.Path, r.Status)
		for _, e := range slices.Backward(evs) {
			if e.Iface == "eth0" && e.Began.Before(at) {
				what += fmt.Sprintf("   %.1f ms after %s", at.Sub(e.Began).Seconds()*1000, e.Action)
				break
			}
		}
		out = append(out, moment{at, "WireServer", what})
	}
	return out, err
}

func queries(ctx context.Context, l *lab.Lab) (out []moment, err error) {
	log, err := l.Cloud.Queries(ctx)
	for _, q := range log {
		out = append(out, moment{q.Time, "nameserver", fmt.Sprintf("%s is asked for %s %s over %s", q.Server, cmp.Or(q.Name, "."), q.Type, q.Proto)})
	}
	return out, err
}

func entries(ctx context.Context, l *lab.Lab) (out []moment, err error) {
	text, err := l.Guest.Run(ctx, "journalctl", "-t", "nm-azure-dispatch", "-o", "json", "--no-pager")
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		var e struct {
			Message string `json:"MESSAGE"`
			Time    string `json:"__REALTIME_TIMESTAMP"`
		}
		if json.Unmarshal(s.Bytes(), &e) != nil {
			continue // "-- No entries --"
		}
		usec, err := strconv.ParseInt(e.Time, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("journal: time %q: %w", e.Time, err)
		}
		out = append(out, moment{time.UnixMicro(usec), "journal", e.Message})
	}
	return out, err
}
