package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/term"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// machine is a lab whose story is printed, for a terminal of [term.Width] columns.
type machine struct {
	*lab.Lab
	w       io.Writer
	colours bool
}

func (m *machine) paint(c term.Colour, text string) string {
	if m.colours {
		text = c.Paint(text)
	}
	return text
}

func (m *machine) text(text string) { fmt.Fprintln(m.w, term.Indent(text, 0)) }
func (m *machine) section(title string) {
	fmt.Fprintf(m.w, "\n%s\n", m.paint(term.Yellow, "== "+title))
}

// run runs a command in the guest, prints it with its output, and returns the output.
func (m *machine) run(ctx context.Context, command string, args ...string) string {
	path := command
	if command == "nm-azure-dispatch" {
		path = lab.ProductBinary
	}
	out, err := m.Guest.Run(ctx, path, args...)
	fmt.Fprintln(m.w, m.paint(term.Green, "# "+command+" "+strings.Join(args, " ")))
	if err != nil {
		out = strings.TrimPrefix(out+"\n(it fails)", "\n")
	}
	fmt.Fprintln(m.w, out)
	return out
}

// goDown shows what follows when the link goes down.
func (m *machine) goDown(ctx context.Context) error {
	m.section("The link goes down: the nameservers are removed")
	err := m.during(ctx, func() error {
		m.run(ctx, "nmcli", "device", "disconnect", "eth0")
		return event(ctx, m, "down")
	})
	m.run(ctx, "resolvectl", "dns", "eth0")
	return err
}

// event waits until the dispatcher has finished an event of eth0.
func event(ctx context.Context, m *machine, action string) error {
	return m.Eventually(ctx, "eth0 "+action, func() error {
		events, err := m.Guest.Events()
		over := func(e lab.Event) bool { return e.Iface == "eth0" && e.Action == action }
		if !slices.ContainsFunc(events, over) {
			err = errors.Join(err, errors.New("the event has not come"))
		}
		return err
	})
}

func up(ctx context.Context, m *machine) error { return event(ctx, m, "up") }

// ready waits until systemd-resolved has nameservers and the unit has ended, successfully.
func ready(ctx context.Context, m *machine) error {
	const script = "resolvectl dns eth0 | grep -F " + lab.Constant + "; " + lab.ProductBinary + " status; ! systemctl is-active nm-azure-checkin"
	return m.Eventually(ctx, "Ready", func() error {
		_, err := m.Guest.Run(ctx, "sh", "-ec", script)
		return err
	})
}

// received are the requests that the WireServer got, one a line.
func (m *machine) received() (lines string) {
	for _, r := range m.Cloud.Requests() {
		lines += r.Method + " " + r.Path
		if strings.Contains(r.Body, "<State>Ready</State>") {
			lines += " Ready"
		}
		lines += "\n"
	}
	return lines
}

// moment is a line of the timeline.
type moment struct {
	at        time.Time
	who, what string
}

// during prints what is logged while a function runs, in order, with the times after the lease.
func (m *machine) during(ctx context.Context, f func() error) error {
	began := time.Now()
	if err := f(); err != nil {
		return err
	}
	all, err := m.moments(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	lease := slices.IndexFunc(all, func(m moment) bool { return strings.HasPrefix(m.what, "ACK") })
	if lease < 0 {
		return errors.New("the DHCP server gave no lease")
	}
	zero := all[lease].at
	for _, one := range slices.DeleteFunc(all, func(m moment) bool { return m.at.Before(began) }) {
		at := fmt.Sprintf("%+8.3f s  ", one.at.Sub(zero).Seconds())
		who := fmt.Sprintf("%-12s", one.who)
		fmt.Fprintln(m.w, m.paint(term.Faint, at)+who+term.Indent(one.what, len(at)+len(who)))
	}
	return nil
}

// moments are all that was logged in the cloud and in the guest.
func (m *machine) moments(ctx context.Context) (all []moment, err error) {
	add := func(at time.Time, who, format string, args ...any) {
		all = append(all, moment{at, who, strings.TrimSpace(fmt.Sprintf(format, args...))})
	}
	for _, d := range m.Cloud.DHCPLog() {
		add(d.Time, "DHCP", "%s %s", d.Type, strings.TrimPrefix(d.Addr.String(), "invalid IP"))
	}
	events, errEvents := m.Guest.Events()
	for _, e := range events {
		if e.Iface == "eth0" {
			add(e.Began, "dispatcher", "eth0 %s, its scripts took %d ms", e.Action, e.Ended.Sub(e.Began).Milliseconds())
		}
	}
	for _, r := range m.Cloud.Requests() {
		add(time.Unix(0, r.UnixNano), "WireServer", "%s %s: %d", r.Method, r.Path, r.Status)
	}
	for _, q := range m.Cloud.Queries() {
		name := cmp.Or(strings.Trim(q.Name, "."), "the root zone")
		add(q.Time, "nameserver", "%s is queried for %s records of %s", q.Server, q.Type, name)
	}
	_, errSync := m.Guest.Run(ctx, "journalctl", "--sync")
	journal, errJournal := m.Guest.Run(ctx, "journalctl", "-q", "-t", "nm-azure-dispatch", "-o", "short-unix", "--no-pager")
	for line := range strings.Lines(journal) {
		f := strings.SplitN(line, " ", 4) // time, host, program, message
		seconds, err := strconv.ParseFloat(f[0], 64)
		if err != nil || len(f) < 4 {
			return nil, fmt.Errorf("journal: entry %q: want a time, a host, a program and a message", line)
		}
		add(time.UnixMicro(int64(seconds*1e6)), "journal", "%s", f[3])
	}
	return all, errors.Join(errEvents, errSync, errJournal)
}
