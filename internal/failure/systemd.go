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
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// Names of systemd, org.freedesktop.systemd1(5), and the socket that it listens
// at for root, whether there is a bus or not.
const (
	privateSocket = "unix:path=/run/systemd/private"
	systemd       = "org.freedesktop.systemd1"
	managerPath   = "/org/freedesktop/systemd1"
	getProperty   = "org.freedesktop.DBus.Properties.Get"
)

// askLimit bounds the questions to systemd, and each one to the journal.
const askLimit = 5 * time.Second

// connect opens systemd's own socket.
func connect(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.Dial(privateSocket, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("systemd: %w", err)
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("systemd: %s: %w", privateSocket, err)
	}
	return conn, nil
}

// units returns the units in a state, the one first that came to it first, and
// without those that failed because systemd ended them for emergency.target.
func units(ctx context.Context, state string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var rows [][]any // a(ssssssouso): the name is first, the object's path seventh
	list := conn.Object(systemd, managerPath).CallWithContext(ctx, systemd+".Manager.ListUnitsFiltered", 0, []string{state})
	if err := list.Store(&rows); err != nil {
		return nil, fmt.Errorf("systemd: %w", err)
	}
	since := map[string]uint64{}
	var names []string
	for _, r := range rows {
		if len(r) < 7 {
			continue // never so
		}
		name, _ := r[0].(string)
		path, _ := r[6].(dbus.ObjectPath)
		// What cannot be read, or is no service's, stays as it is.
		var at uint64
		var result string
		var status int32
		property := func(iface, property string, value any) {
			_ = conn.Object(systemd, path).CallWithContext(ctx, getProperty, 0, systemd+iface, property).Store(value)
		}
		property(".Unit", "StateChangeTimestampMonotonic", &at)
		property(".Service", "Result", &result)
		property(".Service", "ExecMainStatus", &status)
		if result == "signal" && syscall.Signal(status) == syscall.SIGTERM {
			continue
		}
		since[name] = at
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b)) })
	return names, nil
}

// lines returns what a unit's processes logged in this boot, newest first; if
// nothing, what systemd logged about it.
func lines(ctx context.Context, unit string) []string {
	if own := journal(ctx, "_SYSTEMD_UNIT="+unit); len(own) > 0 {
		return own
	}
	return journal(ctx, "UNIT="+unit)
}

// journal returns the newest lines that match all of match; none without
// journalctl.
func journal(ctx context.Context, match ...string) []string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	options := []string{"--quiet", "--no-pager", "--boot", "--output=cat", "--reverse", "--lines=" + strconv.Itoa(maxLines)}
	out, err := exec.CommandContext(ctx, "journalctl", append(options, match...)...).Output()
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(out), func(c rune) bool { return c == '\n' })
}
