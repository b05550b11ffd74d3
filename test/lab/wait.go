package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// deadline is for states that come within a second on an idle machine, or within ten where there are hundreds of events.
const deadline = 90 * time.Second

// Eventually waits until f gives no error. When that takes too long the error has the last one of f's, and all that
// the lab has logged.
func (l *Lab) Eventually(ctx context.Context, what string, f func() error) error {
	waiting, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if err := poll(waiting, f); err != nil {
		return l.withDump(ctx, fmt.Errorf("lab: %s: %w", what, err))
	}
	return nil
}

// withDump adds all that the lab has logged to an error, unless the caller has cancelled what failed.
func (l *Lab) withDump(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	return fmt.Errorf("%w\n%s", err, l.Dump(context.WithoutCancel(ctx)))
}

// Connected waits until NetworkManager says that an interface is connected, and it has an IPv4 address.
func (l *Lab) Connected(ctx context.Context, nic string) error {
	return l.Eventually(ctx, nic+" is connected", func() error {
		out, err := l.Guest.Run(ctx, "nmcli", "-g", "GENERAL.STATE,IP4.ADDRESS", "device", "show", nic)
		if err != nil {
			return err
		}
		state, addr, _ := strings.Cut(out, "\n")
		if state != "100 (connected)" || addr == "" {
			return errors.New(strings.ReplaceAll(out, "\n", ", "))
		}
		return nil
	})
}

// Dump is what the lab has logged, for a human.
func (l *Lab) Dump(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var b strings.Builder
	section := func(name, text string, err error) {
		fmt.Fprintf(&b, "=== %s\n%s\n", name, strings.TrimRight(text, "\n"))
		if err != nil {
			fmt.Fprintf(&b, "(%v)\n", err)
		}
	}
	for _, command := range [][]string{
		{"journalctl", "--no-pager", "-o", "short-precise"},
		{"ip", "addr"},
		{"nmcli", "device", "show"},
		{"resolvectl", "--no-pager"},
		{"ps", "-eo", "pid,stat,args"},
		{"sh", "-c", "tail -n 20 /lab/*.log"},
	} {
		out, err := l.Guest.Run(ctx, command[0], command[1:]...)
		section("guest: "+strings.Join(command, " "), out, err)
	}
	events, err := l.Guest.Events()
	section("guest: events", lines(events), err)
	section("cloud: DHCP", lines(l.Cloud.DHCPLog()), nil)
	section("cloud: DNS", lines(l.Cloud.Queries()), nil)
	section("cloud: WireServer", lines(l.Cloud.Requests()), nil)
	return b.String()
}

func lines[T any](values []T) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%+v\n", v)
	}
	return b.String()
}
