package networkd_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
)

// manager1 is org.freedesktop.network1.Manager as far as it is asked.
type manager1 func() (string, *dbus.Error)

func (m manager1) Describe() (string, *dbus.Error) { return m() }

func TestDescribe(t *testing.T) {
	golden, err := os.ReadFile("testdata/trixie-describelink.json")
	if err != nil {
		t.Fatal(err)
	}
	bus := bustest.New(t)
	conn, far := bus.Connect(t), bus.Connect(t)
	if _, err := networkd.Describe(t.Context(), conn); !errors.Is(err, networkd.ErrNotRunning) {
		t.Errorf("nobody owns the name: %v", err)
	}
	var answer atomic.Pointer[manager1] // asked for by the connection's goroutines
	says := func(m manager1) { answer.Store(&m) }
	says(func() (string, *dbus.Error) { return string(manager(string(golden))), nil })
	if err := far.Export(manager1(func() (string, *dbus.Error) { return (*answer.Load())() }), "/org/freedesktop/network1", "org.freedesktop.network1.Manager"); err != nil {
		t.Fatal(err)
	}
	if _, err := far.RequestName("org.freedesktop.network1", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	links, err := networkd.Describe(t.Context(), conn)
	if err != nil || len(links) != 1 || links[0].Name != "eth0" || links[0].Lease == nil {
		t.Errorf("%+v, %v", links, err)
	}

	says(func() (string, *dbus.Error) { return "", dbus.MakeFailedError(errors.New("no memory")) })
	if _, err := networkd.Describe(t.Context(), conn); err == nil || err.Error() != "networkd: no memory" {
		t.Errorf("an error of another kind: %v", err)
	}
	says(func() (string, *dbus.Error) { return "", dbus.NewError("org.freedesktop.DBus.Error.NoReply", nil) })
	if _, err := networkd.Describe(t.Context(), conn); !errors.Is(err, networkd.ErrNotRunning) {
		t.Errorf("ended while it was asked: %v", err)
	}
	release := make(chan struct{})
	defer close(release)
	says(func() (string, *dbus.Error) { <-release; return "", nil })
	short, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no answer within 50ms"))
	defer cancel()
	_, err = networkd.Describe(short, conn)
	if want := "networkd: systemd-networkd does not answer: no answer within 50ms"; err == nil || err.Error() != want {
		t.Errorf("hung: %v, want %s", err, want)
	}
}

// Asking carries the flag that keeps the bus from starting systemd-networkd.
func TestDescribeDoesNotStart(t *testing.T) {
	bus := bustest.New(t)
	watcher := bus.Connect(t)
	if err := watcher.BusObject().Call("org.freedesktop.DBus.Monitoring.BecomeMonitor", 0, []string{"type='method_call'"}, uint32(0)).Err; err != nil {
		t.Fatal(err)
	}
	messages := make(chan *dbus.Message, 64)
	watcher.Eavesdrop(messages)
	_, _ = networkd.Describe(t.Context(), bus.Connect(t))
	for m := range messages {
		if member, _ := m.Headers[dbus.FieldMember].Value().(string); strings.HasPrefix(member, "Describe") {
			if m.Flags&dbus.FlagNoAutoStart == 0 {
				t.Errorf("flags of the call: %v", m.Flags)
			}
			return
		}
	}
}
