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

// These tests share one connection, as gonetworkmanager makes every user of the
// system bus do: they cannot run in parallel.
func connect(t *testing.T) (*nm.Client, *dbus.Conn) {
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
	return nm.NewClient(conn), conn
}

func TestDevice(t *testing.T) {
	bus := bustest.New(t)
	bus.NetworkManager(t, []bustest.Device{
		{Interface: "eth0", State: 70, Options: map[string]string{"ip_address": "10.0.0.4", "private_245": "a8:3f:81:10"}},
		{Interface: "eth1", State: 100},
		{Interface: "eth2", State: 100, Options: map[string]string{}},
		{Interface: "eth3", State: 100, Options: map[string]string{"routers": "10.3.0.1"}},
	}, nil)
	c, _ := connect(t)
	azure := nm.ParseLease(map[string]any{"ip_address": "10.0.0.4", "private_245": "a8:3f:81:10"})
	plain := nm.ParseLease(map[string]any{"routers": "10.3.0.1"})
	tests := []struct {
		name, iface string
		want        nm.Device
		err         error
	}{
		{name: "first lease", iface: "eth0", want: nm.Device{Interface: "eth0", State: 70, Lease: &azure}},
		{name: "no DHCPv4", iface: "eth1", want: nm.Device{Interface: "eth1", State: nm.StateActivated}},
		{name: "no lease yet", iface: "eth2", want: nm.Device{Interface: "eth2", State: nm.StateActivated}},
		{name: "activated", iface: "eth3", want: nm.Device{Interface: "eth3", State: nm.StateActivated, Lease: &plain}},
		{name: "unknown", iface: "eth9", err: nm.ErrNoDevice},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Device(t.Context(), tt.iface)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, compare); diff != "" {
				t.Errorf("device (-want +got):\n%s", diff)
			}
		})
	}
	devices, err := c.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want []nm.Device
	for _, tt := range tests[:4] {
		want = append(want, tt.want)
	}
	if diff := cmp.Diff(want, devices, compare); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// Open vSwitch has a bridge, a port and an interface of one name; only the
// interface has a lease. Whichever comes first on the bus, both readers return it.
func TestDevicesOfOneName(t *testing.T) {
	leased := bustest.Device{Interface: "br-ex", State: 100, Options: map[string]string{"routers": "10.3.0.1"}, Nameservers: []string{"10.3.0.1"}}
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			devices := slices.Repeat([]bustest.Device{{Interface: "br-ex", State: 70}}, 3)
			devices[i] = leased
			bus := bustest.New(t)
			bus.NetworkManager(t, devices, nil) // GetDeviceByIpIface returns the last one
			c, conn := connect(t)
			got, err := c.Device(t.Context(), "br-ex")
			if err != nil {
				t.Fatal(err)
			}
			s, err := nm.ReadSnapshot(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			other, _ := s.Device("br-ex")
			if got.Lease == nil || got.State != 100 || got.Interface != "br-ex" {
				t.Errorf("device %+v; want the one with the lease", got)
			}
			config, err := c.IP4DNSConfig(t.Context(), got)
			if err != nil || len(config.Nameservers) != 1 {
				t.Errorf("IP4Config %+v, %v; want that of the device with the lease", config, err)
			}
			got.IP4DNS = config
			if diff := cmp.Diff(got, other, compare); diff != "" {
				t.Errorf("the snapshot has another device (-client +snapshot):\n%s", diff)
			}
		})
	}
}

// The lease's object is gone when its turn comes, as the DHCP client was stopped: that is no error.
func TestLeaseGone(t *testing.T) {
	for _, name := range []string{"org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownObject"} {
		bus := bustest.New(t)
		manager := bus.NetworkManager(t, []bustest.Device{{Interface: "eth0", State: 70, Options: map[string]string{}}}, nil)
		getAll := func(string) (map[string]dbus.Variant, *dbus.Error) { return nil, dbus.NewError(name, nil) }
		err := manager.Conn.ExportMethodTable(map[string]any{"GetAll": getAll}, "/org/freedesktop/NetworkManager/DHCP4Config/1", "org.freedesktop.DBus.Properties")
		if err != nil {
			t.Fatal(err)
		}
		c, _ := connect(t)
		if d, err := c.Device(t.Context(), "eth0"); err != nil || d.Lease != nil || d.State != 70 {
			t.Errorf("%s: %+v, %v; want the device without a lease", name, d, err)
		}
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
	config := nm.DNSConfig{Nameservers: addrs("10.0.0.2"), Domains: []string{"a.example"}} // what IP4Config has
	tests := []struct {
		name          string
		iface         string
		configuration []map[string]any
		want          nm.DNSConfig
	}{
		{"its own entry", "eth0", []map[string]any{entry("eth0", 100)}, nm.DNSConfig{Nameservers: addrs("10.0.0.1"), Domains: []string{"b.example"}}},
		{"its entry was lost", "eth0", nil, config},
		{"its entry was lost, another's was not", "eth0", []map[string]any{entry("eth1", 100)}, config},
		{"another's is exclusive", "eth0", []map[string]any{entry("eth1", -50)}, nm.DNSConfig{Excluded: true}},
		{"global-dns", "eth0", []map[string]any{entry("", 0)}, nm.DNSConfig{Global: true}},
		{"a device without IPv4", "eth1", nil, nm.DNSConfig{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bus := bustest.New(t)
			bus.NetworkManager(t, []bustest.Device{{Interface: "eth0", Nameservers: []string{"10.0.0.2"}}, {Interface: "eth1"}}, tt.configuration)
			c, _ := connect(t)
			got, err := c.DNSConfig(t.Context(), tt.iface)
			if err == nil && got.Empty() && !got.Global && !got.Excluded {
				var d nm.Device
				if d, err = c.Device(t.Context(), tt.iface); err == nil {
					got, err = c.IP4DNSConfig(t.Context(), d)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if global, err := c.GlobalDNS(t.Context()); global || err != nil {
				t.Errorf("global %v, %v", global, err)
			}
			if diff := cmp.Diff(tt.want, got, compare); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// NetworkManager is not started either, where the bus could.
func TestNotRunning(t *testing.T) {
	bustest.New(t).Activatable(t, "org.freedesktop.NetworkManager")
	c, _ := connect(t)
	_, err := c.Device(t.Context(), "eth0")
	_, configErr := c.DNSConfig(t.Context(), "eth0")
	_, globalErr := c.GlobalDNS(t.Context())
	for _, err := range []error{err, configErr, globalErr} {
		if !errors.Is(err, nm.ErrNotRunning) {
			t.Errorf("error %v, want ErrNotRunning", err)
		}
	}
}

func TestHangingNetworkManager(t *testing.T) {
	bus := bustest.New(t)
	bus.NetworkManager(t, []bustest.Device{{Interface: "eth0", State: 100}}, nil).Hang(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no answer within 50ms"))
	defer cancel()
	c, _ := connect(t)
	_, err := c.Device(ctx, "eth0")
	if want := "nm: device eth0: NetworkManager does not answer: no answer within 50ms"; errText(err) != want {
		t.Errorf("error %q, want %q", errText(err), want)
	}
}
