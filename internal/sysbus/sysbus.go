// Package sysbus opens the system bus within a deadline, and starts a unit over
// it.
package sysbus

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// systemdName is systemd's on the bus, org.freedesktop.systemd1(5).
const systemdName = "org.freedesktop.systemd1"

// Connect returns the process-wide connection to the system bus, and closes it when
// ctx ends, which fails all calls that are still waiting. It returns when limit ends
// even if the bus does not answer: the library takes no context there.
func Connect(ctx, limit context.Context) (*dbus.Conn, error) {
	type result struct {
		conn *dbus.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := dbus.SystemBus()
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("system bus: %w", r.err)
		}
		context.AfterFunc(ctx, func() { _ = r.conn.Close() })
		return r.conn, nil
	case <-limit.Done():
		return nil, fmt.Errorf("system bus: %w", context.Cause(limit))
	}
}

// StartUnit asks systemd to start a unit and returns when the job is queued; it
// does not wait for the unit. If systemd is busy it returns when ctx ends; the
// request stays queued after the connection is closed.
func StartUnit(ctx context.Context, conn *dbus.Conn, unit string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("start %s: %w", unit, context.Cause(ctx))
	}
	call := conn.Object(systemdName, "/org/freedesktop/systemd1").CallWithContext(ctx, systemdName+".Manager.StartUnit", 0,
		unit, "replace") // a queued job of the unit that is in conflict
	if call.Err != nil && ctx.Err() == nil { // with ctx, the connection may be closed too
		return fmt.Errorf("start %s: %w", unit, call.Err)
	}
	return nil
}
