package failure

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// Names of systemd, org.freedesktop.systemd1(5), and the socket that it listens
// at for root, whether there is a bus or not.
const (
	privateSocket = "unix:path=/run/systemd/private"
	systemdName   = "org.freedesktop.systemd1"
	systemdPath   = "/org/freedesktop/systemd1"
	listUnits     = "org.freedesktop.systemd1.Manager.ListUnitsFiltered"
	getProperty   = "org.freedesktop.DBus.Properties.Get"
	unitInterface = "org.freedesktop.systemd1.Unit"
	changedAt     = "StateChangeTimestampMonotonic"
)

// askLimit bounds the questions to systemd, and each one to the journal.
const askLimit = 5 * time.Second

// connect opens systemd's own socket, else the system bus.
func connect(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.Dial(privateSocket, dbus.WithContext(ctx))
	if err == nil {
		if err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
	bus, busErr := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if busErr != nil {
		return nil, fmt.Errorf("systemd: %w; system bus: %w", err, busErr)
	}
	return bus, nil
}

// units returns the units in a state, the one first that came to it first.
func units(ctx context.Context, state string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var rows []struct {
		Name, Description, Load, Active, Sub, Following string
		Path                                            dbus.ObjectPath
		JobID                                           uint32
		JobType                                         string
		JobPath                                         dbus.ObjectPath
	}
	if err := conn.Object(systemdName, systemdPath).CallWithContext(ctx, listUnits, 0, []string{state}).Store(&rows); err != nil {
		return nil, fmt.Errorf("systemd: %w", err)
	}
	since := map[string]uint64{}
	var names []string
	for _, r := range rows {
		var at uint64 // stays 0 if it cannot be read
		_ = conn.Object(systemdName, r.Path).CallWithContext(ctx, getProperty, 0, unitInterface, changedAt).Store(&at)
		since[r.Name] = at
		names = append(names, r.Name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b)) })
	return names, nil
}

// lines returns what a unit's processes logged in this boot, newest first; if
// nothing, what systemd logged about it.
func lines(ctx context.Context, unit string) []string {
	for _, match := range []string{"_SYSTEMD_UNIT=", "UNIT="} {
		if out := journal(ctx, match+unit); len(out) > 0 {
			return out
		}
	}
	return nil
}

// journal returns the newest lines that match; none without journalctl.
func journal(ctx context.Context, match string) []string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "journalctl", "--quiet", "--no-pager", "--boot", "--output=cat", "--reverse",
		"--lines="+strconv.Itoa(maxLines), match).Output()
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(out), func(c rune) bool { return c == '\n' })
}
