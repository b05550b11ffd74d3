package bustest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
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
	devices map[string]dbus.ObjectPath // what GetDeviceByIpIface returns
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
	n := &NetworkManager{Conn: conn, devices: map[string]dbus.ObjectPath{}, objects: map[dbus.ObjectPath]map[string]map[string]dbus.Variant{}}
	for i, d := range devices {
		path := dbus.ObjectPath(fmt.Sprintf("%s/Devices/%d", nmPath, i+1))
		config := dbus.ObjectPath("/")
		if d.Options != nil {
			config = dbus.ObjectPath(fmt.Sprintf("%s/DHCP4Config/%d", nmPath, i+1))
			options := map[string]dbus.Variant{}
			for k, v := range d.Options {
				options[k] = dbus.MakeVariant(v)
			}
			err = errors.Join(err, n.export(config, nmName+".DHCP4Config", map[string]any{"Options": options}))
		}
		ip4 := dbus.ObjectPath("/")
		if d.Nameservers != nil {
			ip4 = dbus.ObjectPath(fmt.Sprintf("%s/IP4Config/%d", nmPath, i+1))
			data := []map[string]dbus.Variant{}
			for _, s := range d.Nameservers {
				data = append(data, map[string]dbus.Variant{"address": dbus.MakeVariant(s)})
			}
			err = errors.Join(err, n.export(ip4, nmName+".IP4Config", map[string]any{"NameserverData": data, "Domains": []string{"a.example"}}))
		}
		err = errors.Join(err, n.export(path, nmName+".Device", map[string]any{
			"Interface": d.Interface, "IpInterface": d.Interface, "DeviceType": uint32(1), "State": d.State, "Dhcp4Config": config,
			"Ip4Config": ip4,
		}))
		n.devices[d.Interface] = path
	}
	entries := make([]map[string]dbus.Variant, len(configuration))
	for i, c := range configuration {
		entries[i] = map[string]dbus.Variant{}
		for k, v := range c {
			entries[i][k] = dbus.MakeVariant(v)
		}
	}
	err = errors.Join(err, n.export(nmPath+"/DnsManager", nmName+".DnsManager", map[string]any{"Configuration": entries}))
	err = errors.Join(err, n.export(nmPath, nmName, map[string]any{"GlobalDnsConfiguration": map[string]dbus.Variant{}}))
	methods, all := map[string]any{"GetDeviceByIpIface": n.deviceByIPIface}, map[string]any{"GetManagedObjects": n.managedObjects}
	return n, errors.Join(err, n.Conn.ExportMethodTable(methods, nmPath, nmName),
		n.Conn.ExportMethodTable(all, "/org/freedesktop", "org.freedesktop.DBus.ObjectManager"), own(n.Conn, nmName))
}

func (n *NetworkManager) export(path dbus.ObjectPath, iface string, values map[string]any) error {
	props, all := map[string]*prop.Prop{}, map[string]dbus.Variant{}
	for name, v := range values {
		props[name], all[name] = &prop.Prop{Value: v}, dbus.MakeVariant(v)
	}
	n.objects[path] = map[string]map[string]dbus.Variant{iface: all}
	_, err := prop.Export(n.Conn, path, prop.Map{iface: props})
	return err
}

// Hang makes NetworkManager answer no method call until the test ends.
func (n *NetworkManager) Hang(t testing.TB) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hang = make(chan struct{})
	t.Cleanup(func() { close(n.hang) })
}

func (n *NetworkManager) managedObjects() (map[dbus.ObjectPath]map[string]map[string]dbus.Variant, *dbus.Error) {
	return n.objects, nil
}

func (n *NetworkManager) deviceByIPIface(iface string) (dbus.ObjectPath, *dbus.Error) {
	n.mu.Lock()
	hang := n.hang
	path, ok := n.devices[iface]
	n.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if !ok {
		return "", dbus.NewError(nmName+".UnknownDevice", []any{"No device found for the requested iface."})
	}
	return path, nil
}
