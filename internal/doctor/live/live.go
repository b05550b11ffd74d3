// Package live reads what NetworkManager, systemd-resolved and systemd say at
// this moment, for commands that only look. Nothing in it changes anything, nor
// starts a service: every call asks the bus not to, and a name without an owner
// is not called at all.
package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// Names on the bus, D-Bus specification.
const (
	nameHasOwner  = "org.freedesktop.DBus.NameHasOwner"
	propertiesAll = "org.freedesktop.DBus.Properties.GetAll"
)

// ErrNotRunning says that nobody owns the name on the bus.
var ErrNotRunning = errors.New("not running")

// owned returns nil if the name has an owner, and else ErrNotRunning or why it
// is not known.
func owned(ctx context.Context, conn *dbus.Conn, name string) error {
	var has bool
	if err := conn.BusObject().CallWithContext(ctx, nameHasOwner, 0, name).Store(&has); err != nil {
		return fmt.Errorf("the bus does not answer: %w", cause(ctx, err))
	}
	if !has {
		return ErrNotRunning
	}
	return nil
}

// call makes a method call that starts nothing.
func call(ctx context.Context, conn *dbus.Conn, name string, path dbus.ObjectPath, method string, args ...any) *dbus.Call {
	return conn.Object(name, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...)
}

// cause gives the reason why the context ended, if it was that.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// get reads one of a number of properties; the zero value if it is not there.
func get[T any](props map[string]dbus.Variant, name string) T {
	v, _ := props[name].Value().(T)
	return v
}
