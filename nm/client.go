package nm

import (
	"context"
	"errors"
	"fmt"

	"github.com/Wifx/gonetworkmanager/v2"
	"github.com/godbus/dbus/v5"
)

// ErrNotRunning is returned if NetworkManager's name on the bus has no owner.
var ErrNotRunning = errors.New("NetworkManager is not running")

// Read reads NetworkManager's state without profiles, in one round trip. It does not
// start NetworkManager: without it the error is ErrNotRunning. If ctx has ended, the
// error wraps its cause.
//
// Names and values are gonetworkmanager's. Its methods take no context, need a round
// trip for each property, and drop the domains of DnsManager.Configuration.
func Read(ctx context.Context, conn *dbus.Conn) (Snapshot, error) {
	var objects map[dbus.ObjectPath]map[string]properties
	err := call(ctx, conn, "/org/freedesktop", "org.freedesktop.DBus.ObjectManager.GetManagedObjects", &objects)
	return newSnapshot(objects), err
}

// ReadWithProfiles is Read with one more round trip for each active profile. A profile
// that cannot be read, because it is private to a user, has only a name.
func ReadWithProfiles(ctx context.Context, conn *dbus.Conn) (Snapshot, error) {
	s, err := Read(ctx, conn)
	for i := range s.Devices {
		d := &s.Devices[i]
		var settings map[string]properties
		if d.settings != "" && call(ctx, conn, d.settings, gonetworkmanager.ConnectionGetSettings, &settings) == nil {
			d.Profile.add(settings["ipv4"])
		}
	}
	return s, err
}

// call stores the reply of a method in to. For an ended context godbus returns only
// that it has ended, so its cause is used.
func call(ctx context.Context, conn *dbus.Conn, path dbus.ObjectPath, method string, to any) error {
	err := conn.Object(busName, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart).Store(to)
	if err == nil {
		return nil
	}
	e, _ := errors.AsType[dbus.Error](err)
	switch {
	case e.Name == "org.freedesktop.DBus.Error.ServiceUnknown", e.Name == "org.freedesktop.DBus.Error.NameHasNoOwner":
		err = ErrNotRunning
	case ctx.Err() != nil:
		err = fmt.Errorf("NetworkManager does not answer: %w", context.Cause(ctx))
	}
	return fmt.Errorf("nm: %w", err)
}
