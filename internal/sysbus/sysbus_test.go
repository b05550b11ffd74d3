package sysbus_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
)

func TestConnect(t *testing.T) {
	bustest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := sysbus.Connect(ctx, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if shared, err := dbus.SystemBus(); err != nil || shared != conn {
		t.Errorf("the connection is not the one that gonetworkmanager uses: %v", err)
	}
	cancel()
	<-conn.Context().Done() // the end of ctx closes it
}

func TestNoBus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/socket")
	if _, err := sysbus.Connect(t.Context(), t.Context()); err == nil || !strings.HasPrefix(err.Error(), "system bus: ") {
		t.Errorf("error %v", err)
	}
}

// A bus that takes the connection and says nothing (SIGSTOP) holds nobody up.
func TestSilentBus(t *testing.T) {
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+l.Addr().String())
	limit, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no answer within 50ms"))
	defer cancel()
	_, err = sysbus.Connect(t.Context(), limit)
	if want := "system bus: no answer within 50ms"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// systemd is an org.freedesktop.systemd1 that knows one unit.
type systemd struct{}

func (systemd) StartUnit(unit, mode string) (dbus.ObjectPath, *dbus.Error) {
	if unit == "busy.service" {
		<-make(chan int)
	}
	if unit != "known.service" || mode != "replace" {
		return "", dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit " + unit + " not found."})
	}
	return "/org/freedesktop/systemd1/job/1", nil
}

func TestStartUnit(t *testing.T) {
	bus := bustest.New(t)
	conn := bus.Connect(t)
	err := sysbus.StartUnit(t.Context(), conn, "known.service")
	if err == nil || !strings.HasPrefix(err.Error(), "start known.service: ") {
		t.Errorf("without systemd: %v", err)
	}
	far := bus.Connect(t)
	if err := far.Export(systemd{}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		t.Fatal(err)
	}
	if _, err := far.RequestName("org.freedesktop.systemd1", 0); err != nil {
		t.Fatal(err)
	}
	if err := sysbus.StartUnit(t.Context(), conn, "known.service"); err != nil {
		t.Error(err)
	}
	if err := sysbus.StartUnit(t.Context(), conn, "other.service"); err == nil || err.Error() != "start other.service: Unit other.service not found." {
		t.Errorf("unknown unit: %v", err)
	}
}

// A systemd that is too busy to answer has the request all the same.
func TestStartUnitBusy(t *testing.T) {
	bus := bustest.New(t)
	conn, far := bus.Connect(t), bus.Connect(t)
	if err := far.Export(systemd{}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		t.Fatal(err)
	}
	if _, err := far.RequestName("org.freedesktop.systemd1", 0); err != nil {
		t.Fatal(err)
	}
	calls := bus.Monitor(t, far)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("out of time"))
	defer cancel()
	if err := sysbus.StartUnit(ctx, conn, "busy.service"); err != nil {
		t.Error(err)
	}
	if got := calls(); len(got) != 1 || got[0] != "org.freedesktop.systemd1.Manager.StartUnit" {
		t.Errorf("calls %v", got)
	}
	if err := sysbus.StartUnit(ctx, conn, "known.service"); err == nil || err.Error() != "start known.service: out of time" {
		t.Errorf("out of time before: %v", err)
	}
}
