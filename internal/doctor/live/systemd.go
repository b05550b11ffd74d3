package live

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// Names on the bus, org.freedesktop.systemd1(5). LoadUnit and what calls it are
// not used: they make systemd load the unit.
const (
	systemdName    = "org.freedesktop.systemd1"
	systemdPath    = "/org/freedesktop/systemd1"
	getUnitFile    = "org.freedesktop.systemd1.Manager.GetUnitFileState"
	getUnit        = "org.freedesktop.systemd1.Manager.GetUnit"
	propertiesGet  = "org.freedesktop.DBus.Properties.Get"
	unitInterface  = "org.freedesktop.systemd1.Unit"
	activeProperty = "ActiveState"
)

// Unit is how a unit stands.
type Unit struct {
	File   string // UnitFileState: "enabled", "disabled", "static", "masked", ...; "" if there is no such file
	Active string // ActiveState: "active", "inactive", "failed", ...; "" if it is not loaded, or not known
}

// On reports whether the unit runs, or will when its time comes.
func (u Unit) On() bool {
	switch u.File {
	case "enabled", "enabled-runtime", "alias", "linked", "generated", "indirect":
		return true
	}
	return u.Active == "active" || u.Active == "activating"
}

// ReadUnits asks systemd how units stand. The error is ErrNotRunning where
// systemd is not on the bus.
func ReadUnits(ctx context.Context, conn *dbus.Conn, names []string) (map[string]Unit, error) {
	if err := owned(ctx, conn, systemdName); err != nil {
		return nil, err
	}
	units := make(map[string]Unit, len(names))
	for _, name := range names {
		var u Unit
		err := call(ctx, conn, systemdName, systemdPath, getUnitFile, name).Store(&u.File)
		if ctx.Err() != nil || err != nil && errorName(err) == "" {
			return nil, fmt.Errorf("systemd does not answer: %w", cause(ctx, err))
		}
		var path dbus.ObjectPath
		var state dbus.Variant
		if err := call(ctx, conn, systemdName, systemdPath, getUnit, name).Store(&path); err == nil {
			err = call(ctx, conn, systemdName, path, propertiesGet, unitInterface, activeProperty).Store(&state)
			if err == nil {
				u.Active, _ = state.Value().(string)
			}
		}
		units[name] = u
	}
	return units, nil
}
