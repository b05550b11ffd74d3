package machine

import (
	"cmp"
	"context"
	"fmt"
	"path"

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

// systemdName is systemd's on the bus, org.freedesktop.systemd1(5). LoadUnit and methods
// that call it are not used, because they make systemd load the unit.
const systemdName = "org.freedesktop.systemd1"

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

// Running reports whether a service runs, and does not wait for its next start.
func (u Unit) Running() bool {
	return u.Active == "active" || u.Active == "activating" && u.Sub != "auto-restart"
}

// Masked reports whether the unit cannot be started.
func (u Unit) Masked() bool { return u.File == "masked" || u.File == "masked-runtime" }

// readUnits reads the status of units from systemd. It loads and starts no unit.
func readUnits(ctx context.Context, conn *dbus.Conn, names []string) (map[string]Unit, error) {
	const manager, get, service = "/org/freedesktop/systemd1", "org.freedesktop.DBus.Properties.Get", systemdName + ".Service"
	call := func(path dbus.ObjectPath, method string, to any, args ...any) error {
		return conn.Object(systemdName, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...).Store(to)
	}
	var files []struct{ Path, State string }
	var loaded []struct {
		Name, Description, Load, Active, Sub, Following string

		Path    dbus.ObjectPath
		Job     uint32
		JobType string
		JobPath dbus.ObjectPath
	}
	err := call(manager, systemdName+".Manager.ListUnitFilesByPatterns", &files, []string{}, names)
	if err == nil {
		err = call(manager, systemdName+".Manager.ListUnitsByPatterns", &loaded, []string{}, names)
	}
	if err != nil {
		return nil, fmt.Errorf("systemd does not answer: %w", cmp.Or(context.Cause(ctx), err))
	}
	units := map[string]Unit{}
	for _, f := range files {
		units[path.Base(f.Path)] = Unit{File: f.State}
	}
	for _, l := range loaded {
		u := Unit{File: units[l.Name].File, Active: l.Active}
		if l.Active == "activating" || l.Active == "failed" {
			u.Sub = l.Sub
			_ = call(l.Path, get, &u.Result, service, "Result") // only a service has them
			_ = call(l.Path, get, &u.Exit, service, "ExecMainStatus")
		}
		units[l.Name] = u
	}
	return units, nil
}
