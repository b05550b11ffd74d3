package nm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/sysbus"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
)

// These tests share one connection, as the program's parts do: they cannot run in
// parallel.
func connect(t *testing.T) *dbus.Conn {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	limit, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	conn, err := sysbus.Connect(ctx, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// read reads the state of a NetworkManager with these devices and entries of DnsManager.Configuration.
func read(t *testing.T, devices []bustest.Device, configuration []map[string]any) nm.Snapshot {
	t.Helper()
	bustest.New(t).NetworkManager(t, devices, configuration)
	s, err := nm.Read(t.Context(), connect(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDevices(t *testing.T) {
	s := read(t, []bustest.Device{
		{Interface: "eth0", State: 70, Options: map[string]string{"ip_address": "10.0.0.4", "private_245": "a8:3f:81:10"}},
		{Interface: "eth1", State: 100},
		{Interface: "eth2", State: 100, Options: map[string]string{}, Nameservers: []string{"10.0.0.2"}}, // no lease yet
		{Interface: "eth3", State: 100, Options: map[string]string{"routers": "10.3.0.1"}},
	}, nil)
	azure := nm.ParseLease(map[string]any{"ip_address": "10.0.0.4", "private_245": "a8:3f:81:10"})
	plain := nm.ParseLease(map[string]any{"routers": "10.3.0.1"})
	want := []nm.Device{
		{Interface: "eth0", State: 70, Lease: &azure},
		{Interface: "eth1", State: nm.StateActivated},
		{Interface: "eth2", State: nm.StateActivated, IP4DNS: nm.DNSConfig{Nameservers: addrs("10.0.0.2"), Domains: []string{"a.example"}}},
		{Interface: "eth3", State: nm.StateActivated, Lease: &plain},
	}
	if diff := cmp.Diff(want, s.Devices, compare); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if _, ok := s.Device("eth9"); ok {
		t.Error("there is an eth9")
	}
}

// Open vSwitch has a bridge, a port and an interface of one name; only the
// interface has a lease, whichever comes first on the bus.
func TestDevicesOfOneName(t *testing.T) {
	for i := range 3 {
		devices := slices.Repeat([]bustest.Device{{Interface: "br-ex", State: 70}}, 3)
		devices[i] = bustest.Device{Interface: "br-ex", State: 100, Options: map[string]string{"routers": "10.3.0.1"}}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if d, ok := read(t, devices, nil).Device("br-ex"); !ok || d.Lease == nil || d.State != 100 {
				t.Errorf("device %+v; want the one with the lease", d)
			}
		})
	}
}

func TestDNSConfigOverTheBus(t *testing.T) {
	entry := func(iface string, priority int32) map[string]any {
		e := map[string]any{"nameservers": []string{"10.0.0.1"}, "domains": []string{"b.example"}, "priority": priority, "vpn": false}
		if iface != "" {
			e["interface"] = iface
		}
		return e
	}
	tests := []struct {
		name          string
		configuration []map[string]any
		want          nm.DNSConfig
	}{
		{"its own entry", []map[string]any{entry("eth0", 100)}, nm.DNSConfig{Nameservers: addrs("10.0.0.1"), Domains: []string{"b.example"}}},
		{"none", nil, nm.DNSConfig{}},
		{"another's", []map[string]any{entry("eth1", 100)}, nm.DNSConfig{}},
		{"another's is exclusive", []map[string]any{entry("eth1", -50)}, nm.DNSConfig{Excluded: true}},
		{"global-dns", []map[string]any{entry("", 0)}, nm.DNSConfig{Global: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := read(t, []bustest.Device{{Interface: "eth0"}, {Interface: "eth1"}}, tt.configuration)
			if diff := cmp.Diff(tt.want, s.DNSConfig("eth0"), compare); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			s.GlobalDNS = true
			if diff := cmp.Diff(nm.DNSConfig{Global: true}, s.DNSConfig("eth0"), compare); diff != "" {
				t.Errorf("with a global configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// NetworkManager is not started either, where the bus could.
func TestNotRunning(t *testing.T) {
	bustest.New(t).Activatable(t, "org.freedesktop.NetworkManager")
	if _, err := nm.Read(t.Context(), connect(t)); !errors.Is(err, nm.ErrNotRunning) {
		t.Errorf("error %v, want ErrNotRunning", err)
	}
}

func TestHangingNetworkManager(t *testing.T) {
	bus := bustest.New(t)
	bus.NetworkManager(t, []bustest.Device{{Interface: "eth0", State: 100}}, nil).Hang(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no answer within 50ms"))
	defer cancel()
	_, err := nm.Read(ctx, connect(t))
	if want := "nm: NetworkManager does not answer: no answer within 50ms"; errText(err) != want {
		t.Errorf("error %q, want %q", errText(err), want)
	}
}
