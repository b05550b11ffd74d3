package live

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
)

// Names on the bus, NetworkManager's D-Bus reference.
const (
	nmName         = "org.freedesktop.NetworkManager"
	nmManager      = "org.freedesktop.NetworkManager"
	nmDevice       = "org.freedesktop.NetworkManager.Device"
	nmDHCP4        = "org.freedesktop.NetworkManager.DHCP4Config"
	nmActive       = "org.freedesktop.NetworkManager.Connection.Active"
	nmDNS          = "org.freedesktop.NetworkManager.DnsManager"
	nmGetSettings  = "org.freedesktop.NetworkManager.Settings.Connection.GetSettings"
	objectsPath    = "/org/freedesktop"
	managedObjects = "org.freedesktop.DBus.ObjectManager.GetManagedObjects"
)

// stateFlagExternal is NM_ACTIVATION_STATE_FLAG_EXTERNAL.
const stateFlagExternal = 0x80

// States of a device, NMDeviceState, as far as anybody here asks.
const (
	StateUnmanaged    = 10
	StateUnavailable  = 20
	StateDisconnected = 30
	StateActivated    = 100
)

// NetworkManager is what NetworkManager says.
type NetworkManager struct {
	Version   string
	DNSMode   string // DnsManager.Mode: "default", "none", "systemd-resolved", ...
	RcManager string // DnsManager.RcManager: who writes resolv.conf
	Devices   []Device

	Configuration []map[string]any // of DnsManager, for Wish
}

// Device is a device as far as DHCPv4 and DNS go.
type Device struct {
	Interface string // the IP interface, or the device's own where there is none yet
	Managed   bool
	State     uint32 // NMDeviceState
	Reason    uint32 // NMDeviceStateReason
	Profile   string // ID of the active connection; "" if none is active
	External  bool   // NetworkManager found it configured
	Method    string // ipv4.method of the profile; "" if that cannot be read
	// Lease is nil if there is no DHCPv4 lease, or not yet.
	Lease *nm.Lease
	// Option245 is the option as NetworkManager spells it; "" if it is absent.
	Option245 string

	settings dbus.ObjectPath
}

// Device returns the device of an interface.
func (n NetworkManager) Device(iface string) (Device, bool) {
	i := slices.IndexFunc(n.Devices, func(d Device) bool { return d.Interface == iface })
	if i < 0 {
		return Device{}, false
	}
	return n.Devices[i], true
}

// DNSConfig returns what NetworkManager wants the interface to have.
func (n NetworkManager) DNSConfig(iface string) nm.DNSConfig {
	return nm.ParseDNSConfig(n.Configuration, iface)
}

// ReadNetworkManager reads all of it in one round trip, and one more for each
// active profile. The error is ErrNotRunning without NetworkManager.
func ReadNetworkManager(ctx context.Context, conn *dbus.Conn) (NetworkManager, error) {
	if err := owned(ctx, conn, nmName); err != nil {
		return NetworkManager{}, err
	}
	var objects map[dbus.ObjectPath]map[string]map[string]dbus.Variant
	if err := call(ctx, conn, nmName, objectsPath, managedObjects).Store(&objects); err != nil {
		return NetworkManager{}, fmt.Errorf("NetworkManager does not answer: %w", cause(ctx, err))
	}
	n := decode(objects)
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.settings == "" || d.settings == "/" {
			continue
		}
		// A profile can be another user's alone: then there is no telling.
		var settings map[string]map[string]dbus.Variant
		if err := call(ctx, conn, nmName, d.settings, nmGetSettings).Store(&settings); err == nil {
			d.Method = get[string](settings["ipv4"], "method")
		}
	}
	return n, nil
}

func decode(objects map[dbus.ObjectPath]map[string]map[string]dbus.Variant) NetworkManager {
	var n NetworkManager
	for _, ifaces := range objects {
		if p, ok := ifaces[nmManager]; ok {
			n.Version = get[string](p, "Version")
		}
		if p, ok := ifaces[nmDNS]; ok {
			n.DNSMode, n.RcManager = get[string](p, "Mode"), get[string](p, "RcManager")
			for _, entry := range get[[]map[string]dbus.Variant](p, "Configuration") {
				n.Configuration = append(n.Configuration, values(entry))
			}
		}
		if p, ok := ifaces[nmDevice]; ok {
			n.Devices = append(n.Devices, device(p, objects))
		}
	}
	slices.SortFunc(n.Devices, func(a, b Device) int { return strings.Compare(a.Interface, b.Interface) })
	return n
}

func device(p map[string]dbus.Variant, objects map[dbus.ObjectPath]map[string]map[string]dbus.Variant) Device {
	d := Device{Interface: get[string](p, "IpInterface"), Managed: get[bool](p, "Managed"), State: get[uint32](p, "State")}
	if d.Interface == "" {
		d.Interface = get[string](p, "Interface")
	}
	if pair := get[[]any](p, "StateReason"); len(pair) == 2 {
		d.Reason, _ = pair[1].(uint32)
	}
	if active, ok := objects[get[dbus.ObjectPath](p, "ActiveConnection")][nmActive]; ok {
		d.Profile, d.settings = get[string](active, "Id"), get[dbus.ObjectPath](active, "Connection")
		d.External = get[uint32](active, "StateFlags")&stateFlagExternal != 0
	}
	options := values(get[map[string]dbus.Variant](objects[get[dbus.ObjectPath](p, "Dhcp4Config")][nmDHCP4], "Options"))
	if len(options) > 0 {
		lease := nm.ParseLease(options)
		d.Lease = &lease
		for _, key := range []string{"private_245", "unknown_245", "azureendpoint"} {
			if s, _ := options[key].(string); s != "" && d.Option245 == "" {
				d.Option245 = s
			}
		}
	}
	return d
}

func values(props map[string]dbus.Variant) map[string]any {
	out := make(map[string]any, len(props))
	for k, v := range props {
		out[k] = v.Value()
	}
	return out
}
