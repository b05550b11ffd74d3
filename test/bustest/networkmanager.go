package bustest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

const (
	nmName = "org.freedesktop.NetworkManager"
	nmPath = "/org/freedesktop/NetworkManager"
)

// Device is a device of NetworkManager's.
type Device struct {
	Interface string
	State     uint32
	// Options are those of its DHCPv4 lease; nil for no DHCPv4 at all.
	Options map[string]string
	// Nameservers are those of its IP4Config; nil for no IP4Config.
	Nameservers []string
}

// NetworkManager is exported as org.freedesktop.NetworkManager.
type NetworkManager struct {
	Conn *dbus.Conn // the connection that it is on

	mu      sync.Mutex
	objects map[dbus.ObjectPath]map[string]map[string]dbus.Variant
	hang    chan struct{}
}

// NetworkManager is ExportNetworkManager for a test.
func (b *Bus) NetworkManager(t testing.TB, devices []Device, configuration []map[string]any) *NetworkManager {
	t.Helper()
	n, err := b.ExportNetworkManager(devices, configuration)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ExportNetworkManager exports devices and DnsManager.Configuration.
func (b *Bus) ExportNetworkManager(devices []Device, configuration []map[string]any) (*NetworkManager, error) {
	conn, err := b.connect()
	if err != nil {
		return nil, err
	}
	n := &NetworkManager{Conn: conn, objects: map[dbus.ObjectPath]map[string]map[string]dbus.Variant{}}
	for i, d := range devices {
		path := func(kind string) dbus.ObjectPath { return dbus.ObjectPath(fmt.Sprintf("%s/%s/%d", nmPath, kind, i+1)) }
		dhcp4, ip4 := dbus.ObjectPath("/"), dbus.ObjectPath("/")
		if d.Options != nil {
			dhcp4 = path("DHCP4Config")
			options := map[string]dbus.Variant{}
			for k, v := range d.Options {
				options[k] = dbus.MakeVariant(v)
			}
			n.add(dhcp4, ".DHCP4Config", map[string]any{"Options": options})
		}
		if d.Nameservers != nil {
			ip4 = path("IP4Config")
			data := []map[string]dbus.Variant{}
			for _, s := range d.Nameservers {
				data = append(data, map[string]dbus.Variant{"address": dbus.MakeVariant(s)})
			}
			n.add(ip4, ".IP4Config", map[string]any{"NameserverData": data, "Domains": []string{"a.example"}})
		}
		n.add(path("Devices"), ".Device", map[string]any{
			"Interface": d.Interface, "IpInterface": d.Interface, "DeviceType": uint32(1), "State": d.State, "Dhcp4Config": dhcp4, "Ip4Config": ip4,
		})
	}
	entries := make([]map[string]dbus.Variant, len(configuration))
	for i, c := range configuration {
		entries[i] = variants(c)
	}
	n.add(nmPath+"/DnsManager", ".DnsManager", map[string]any{"Configuration": entries})
	n.add(nmPath, "", map[string]any{"GlobalDnsConfiguration": map[string]dbus.Variant{}})
	methods := map[string]any{"GetManagedObjects": n.managedObjects}
	return n, errors.Join(conn.ExportMethodTable(methods, "/org/freedesktop", "org.freedesktop.DBus.ObjectManager"), own(conn, nmName))
}

func (n *NetworkManager) add(path dbus.ObjectPath, iface string, properties map[string]any) {
	n.objects[path] = map[string]map[string]dbus.Variant{nmName + iface: variants(properties)}
}

func variants(values map[string]any) map[string]dbus.Variant {
	out := map[string]dbus.Variant{}
	for name, v := range values {
		out[name] = dbus.MakeVariant(v)
	}
	return out
}

// Hang makes NetworkManager answer no method call until the test ends.
func (n *NetworkManager) Hang(t testing.TB) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hang = make(chan struct{})
	t.Cleanup(func() { close(n.hang) })
}

func (n *NetworkManager) managedObjects() (map[dbus.ObjectPath]map[string]map[string]dbus.Variant, *dbus.Error) {
	n.mu.Lock()
	hang := n.hang
	n.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return n.objects, nil
}
