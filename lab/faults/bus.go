package faults

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
)

// startBus puts a dbus-daemon where the system bus is, and NetworkManager on it: the one interface, lo, has a lease with
// that option 245. There is neither resolved nor systemd.
func startBus(option245 string) (end func(), err error) {
	b := &bench{}
	defer func() {
		if p := recover(); p != nil {
			b.end()
			err = fmt.Errorf("bus: %v", p)
		}
	}()
	bus := &bustest.Bus{Address: bustest.Start(b, "/run/dbus/system_bus_socket")}
	bus.NetworkManager(b, []bustest.Device{{Interface: "lo", State: 100, Options: map[string]string{
		"ip_address": "10.0.0.4", "routers": "10.0.0.1", "private_245": option245, "domain_name_servers": constant,
	}}}, nil)
	return b.end, nil
}

// bench is as much of a test as bustest asks for, outside of one. Another method of testing.TB's would be nil.
type bench struct {
	testing.TB
	cleanups []func()
}

// Helper has nobody to help.
func (b *bench) Helper() {}

// Fatal ends startBus.
func (b *bench) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf ends startBus.
func (b *bench) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Skip ends startBus: a case is played or it is a failure.
func (b *bench) Skip(args ...any) { b.Fatal(args...) }

// Cleanup registers what end does.
func (b *bench) Cleanup(f func()) { b.cleanups = append(b.cleanups, f) }

// TempDir is in the case's own /run.
func (b *bench) TempDir() string {
	dir, err := os.MkdirTemp("/run", "bus")
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

func (b *bench) end() {
	for _, f := range slices.Backward(b.cleanups) {
		f()
	}
}
