package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Event is an event of nm-dispatcher, as a script in the guest saw it.
type Event struct {
	Action, Iface string
	Began         time.Time // when the scripts of no-wait.d were started
	Ended         time.Time // when these had ended, and the ordinary ones before the recorder's
}

// The recorder is one script under three names. One that nm-dispatcher starts without waiting notes when an event
// begins; the last of the ordinary ones, which wait for all those, notes that it is over.
const (
	recorderPath = "/usr/lib/NetworkManager/dispatcher.d"
	eventsPath   = "/lab/events"
	recorder     = `#!/bin/bash
echo "$EPOCHREALTIME ${0##*/} $2 ${1:--}" >>` + eventsPath + "\n"
	recorderBegin = "00-lab-begin"
	recorderEnd   = "zz-lab-end"
)

func (f *files) installRecorder() error {
	for _, name := range []string{"no-wait.d/" + recorderBegin, recorderEnd, "pre-up.d/" + recorderEnd} {
		if err := f.WriteFile(recorderPath+"/"+name, recorder, 0o755); err != nil {
			return err
		}
	}
	return f.Symlink("no-wait.d/"+recorderBegin, recorderPath+"/"+recorderBegin)
}

// Events are the events so far that are over, in the order in which nm-dispatcher dealt with them. Those of no
// interface have "-" for one.
func (g *Guest) Events() ([]Event, error) {
	if !g.Exists(eventsPath) {
		return nil, nil
	}
	text, err := g.ReadFile(eventsPath)
	if err != nil {
		return nil, err
	}
	return parseEvents(text)
}

// Settle returns when all events are over that NetworkManager had a reason for until now. It changes the guest's
// hostname, for an event of its own to come after those. NetworkManager may learn of a change from the kernel later than
// of the hostname: where another event comes behind, it is changed again.
func (g *Guest) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for last := false; !last; {
		asked := time.Now()
		if _, err := g.Run(ctx, "nmcli", "general", "hostname", fmt.Sprintf("guest-%d", asked.UnixNano())); err != nil {
			return err
		}
		err := poll(ctx, func() error {
			events, err := g.Events()
			i := slices.IndexFunc(events, func(e Event) bool { return e.Action == "hostname" && !e.Began.Before(asked) })
			if i < 0 {
				return errors.Join(err, errors.New("lab: events are not over"))
			}
			last = !slices.ContainsFunc(events[i:], func(e Event) bool { return e.Action != "hostname" })
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func parseEvents(text string) ([]Event, error) {
	var events []Event
	began := make(map[Event][]time.Time)
	for line := range strings.Lines(text) {
		var seconds float64
		var script string
		var e Event
		if _, err := fmt.Sscan(line, &seconds, &script, &e.Action, &e.Iface); err != nil {
			return nil, fmt.Errorf("lab: event %q: %w", line, err)
		}
		at, key := time.UnixMicro(int64(seconds*1e6)), e
		if script == recorderBegin {
			began[key] = append(began[key], at)
			continue
		}
		e.Began, e.Ended = at, at
		if times := began[key]; len(times) > 0 {
			e.Began, began[key] = times[0], times[1:]
		}
		events = append(events, e)
	}
	return events, nil
}
