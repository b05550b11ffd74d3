package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// The units whose status is read.
const (
	UnitNetworkManager = "NetworkManager.service"
	UnitDispatcher     = "NetworkManager-dispatcher.service"
	UnitNetworkd       = "systemd-networkd.service"
	UnitTimer          = "nm-azure-checkin.timer"
	UnitCheckIn        = "nm-azure-checkin.service"
	UnitResolved       = "systemd-resolved.service"
)

// Names on the bus, org.freedesktop.systemd1(5). LoadUnit and methods that
// call it are not used, because they make systemd load the unit.
const (
	systemdName   = "org.freedesktop.systemd1"
	systemdPath   = "/org/freedesktop/systemd1"
	getUnitFile   = "org.freedesktop.systemd1.Manager.GetUnitFileState"
	getUnit       = "org.freedesktop.systemd1.Manager.GetUnit"
	propertiesGet = "org.freedesktop.DBus.Properties.Get"

	unitInterface    = "org.freedesktop.systemd1.Unit"
	serviceInterface = "org.freedesktop.systemd1.Service"
)

// Units is the status of units.
type Units struct {
	Systemd bool // the machine was booted with systemd, sd_booted(3)
	Status  Seen[map[string]Unit]
}

// Of returns the status of a unit.
func (u Units) Of(name string) Unit { return u.Status.V[name] }

// Unit is the status of a unit.
type Unit struct {
	File   string // UnitFileState: "enabled", "disabled", "static", "masked", ...; "" if there is no such file
	Active string // ActiveState: "active", "inactive", "failed", ...; "" if it is not loaded, or not known
	Sub    string // SubState where it is neither active nor inactive: "auto-restart", ...
	Result string // of a service, there too: "exit-code", ...
	Exit   int32  // ExecMainStatus of a service, there too
}

// On reports whether the unit is active or waiting for its time.
func (u Unit) On() bool {
	switch u.File {
	case "enabled", "enabled-runtime", "alias", "linked", "generated", "indirect":
		return true
	}
	return u.Active == "active" || u.Active == "activating"
}

// Masked reports whether the unit cannot be started.
func (u Unit) Masked() bool { return u.File == "masked" || u.File == "masked-runtime" }

// ReadUnits reads the status of units from systemd. It loads and starts no unit.
func ReadUnits(ctx context.Context, conn *dbus.Conn, names []string) (map[string]Unit, error) {
	call := func(path dbus.ObjectPath, method string, args ...any) *dbus.Call {
		return conn.Object(systemdName, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...)
	}
	get := func(path dbus.ObjectPath, iface, name string, to any) {
		var v dbus.Variant
		if call(path, propertiesGet, iface, name).Store(&v) == nil {
			_ = v.Store(to) // zero if it is of another type
		}
	}
	units := make(map[string]Unit, len(names))
	for _, name := range names {
		var u Unit
		err := call(systemdPath, getUnitFile, name).Store(&u.File)
		e, answered := errors.AsType[dbus.Error](err)
		absent := e.Name == "org.freedesktop.DBus.Error.NameHasNoOwner" || e.Name == "org.freedesktop.DBus.Error.ServiceUnknown"
		if ctx.Err() != nil || err != nil && (!answered || absent) {
			return nil, fmt.Errorf("systemd does not answer: %w", cmp.Or(context.Cause(ctx), err))
		}
		var path dbus.ObjectPath
		if call(systemdPath, getUnit, name).Store(&path) == nil {
			get(path, unitInterface, "ActiveState", &u.Active)
			if u.Active == "activating" || u.Active == "failed" {
				get(path, unitInterface, "SubState", &u.Sub)
				get(path, serviceInterface, "Result", &u.Result)
				get(path, serviceInterface, "ExecMainStatus", &u.Exit)
			}
		}
		units[name] = u
	}
	return units, nil
}
