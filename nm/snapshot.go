package nm

import (
	"context"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Names on the bus that only a snapshot uses.
const (
	objectsPath     = "/org/freedesktop"
	managedObjects  = "org.freedesktop.DBus.ObjectManager.GetManagedObjects"
	getSettings     = busName + ".Settings.Connection.GetSettings"
	ifaceDevice     = busName + ".Device"
	ifaceDHCP4      = busName + ".DHCP4Config"
	ifaceActive     = busName + ".Connection.Active"
	activationExtra = 0x80 // NM_ACTIVATION_STATE_FLAG_EXTERNAL
)

// The states of a device, NMDeviceState, that readers of a snapshot need.
const (
	StateUnmanaged    = 10
	StateUnavailable  = 20
	StateDisconnected = 30
	StateActivated    = 100
)

// Snapshot is the state of NetworkManager and its devices at one moment.
type Snapshot struct {
	Version       string
	DNSMode       string           // DnsManager.Mode: "default", "none", "systemd-resolved", ...
	RcManager     string           // DnsManager.RcManager: who writes resolv.conf
	GlobalDNS     bool             // there is a global DNS configuration, which replaces that of all devices
	Configuration []map[string]any // of DnsManager
	Devices       []DeviceInfo     // by name
}

// DeviceInfo is a device with its profile and its DHCPv4 lease.
type DeviceInfo struct {
	Interface string // the IP interface, or the device's own where there is none yet
	Managed   bool
	State     uint32 // NMDeviceState
	Reason    uint32 // NMDeviceStateReason
	External  bool   // configured by another program
	Profile   Profile
	Lease     *Lease // nil if there is no DHCPv4 lease, or not yet

	settings dbus.ObjectPath
}

// Profile is a device's active connection profile. Fields that cannot be
// read, because the profile is private to a user, are zero.
type Profile struct {
	Name             string // "" if no profile is active
	Method           string // ipv4.method
	DNS              bool   // it has nameservers of its own, ipv4.dns
	IgnoreAutoDNS    bool   // ipv4.ignore-auto-dns
	IgnoreAutoRoutes bool   // ipv4.ignore-auto-routes
	NeverDefault     bool   // ipv4.never-default
	RouteTable       uint32 // ipv4.route-table; 0 for the main table
}

// Device returns the device of an interface. Open vSwitch has several with
// the same name: the one with the lease is returned.
func (s Snapshot) Device(iface string) (DeviceInfo, bool) {
	var found DeviceInfo
	ok := false
	for _, d := range s.Devices {
		if d.Interface == iface && (!ok || d.Lease != nil) {
			found, ok = d, true
		}
	}
	return found, ok
}

// DNSConfig returns the DNS configuration that NetworkManager wants for the interface.
func (s Snapshot) DNSConfig(iface string) DNSConfig { return ParseDNSConfig(s.Configuration, iface) }

// ReadSnapshot reads a snapshot, in one round trip and one more per active profile.
// It starts no service; the error is ErrNotRunning without NetworkManager.
func ReadSnapshot(ctx context.Context, conn *dbus.Conn) (Snapshot, error) {
	call := func(path dbus.ObjectPath, method string, to any) error {
		err := conn.Object(busName, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart).Store(to)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	var objects map[dbus.ObjectPath]map[string]properties // dbus.Store wants no named map
	if err := call(objectsPath, managedObjects, &objects); err != nil {
		return Snapshot{}, wrap(ctx, "snapshot", err)
	}
	s := managed(objects).snapshot()
	for i := range s.Devices {
		d := &s.Devices[i]
		var settings map[string]map[string]dbus.Variant
		if d.settings != "" && d.settings != "/" && call(d.settings, getSettings, &settings) == nil {
			d.Profile.read(settings["ipv4"])
		}
	}
	return s, nil
}

type (
	properties = map[string]dbus.Variant
	managed    map[dbus.ObjectPath]map[string]properties
)

func (objects managed) snapshot() Snapshot {
	var s Snapshot
	for _, ifaces := range objects {
		if p, ok := ifaces[busName]; ok {
			s.Version = property[string](p, "Version")
			s.GlobalDNS = len(property[map[string]dbus.Variant](p, "GlobalDnsConfiguration")) > 0
		}
		if p, ok := ifaces[dnsManager]; ok {
			s.DNSMode, s.RcManager = property[string](p, "Mode"), property[string](p, "RcManager")
			for _, entry := range property[[]properties](p, "Configuration") {
				s.Configuration = append(s.Configuration, plain(entry))
			}
		}
		if p, ok := ifaces[ifaceDevice]; ok {
			s.Devices = append(s.Devices, objects.device(p))
		}
	}
	slices.SortFunc(s.Devices, func(a, b DeviceInfo) int { return strings.Compare(a.Interface, b.Interface) })
	return s
}

func (objects managed) device(p properties) DeviceInfo {
	d := DeviceInfo{Interface: property[string](p, "IpInterface"), Managed: property[bool](p, "Managed"), State: property[uint32](p, "State")}
	if d.Interface == "" {
		d.Interface = property[string](p, "Interface")
	}
	if pair := property[[]any](p, "StateReason"); len(pair) == 2 {
		d.Reason, _ = pair[1].(uint32)
	}
	if active, ok := objects[property[dbus.ObjectPath](p, "ActiveConnection")][ifaceActive]; ok {
		d.Profile.Name, d.settings = property[string](active, "Id"), property[dbus.ObjectPath](active, "Connection")
		d.External = property[uint32](active, "StateFlags")&activationExtra != 0
	}
	raw := property[map[string]dbus.Variant](objects[property[dbus.ObjectPath](p, "Dhcp4Config")][ifaceDHCP4], "Options")
	if len(raw) > 0 {
		lease := ParseLease(plain(raw))
		d.Lease = &lease
	}
	return d
}

// read decodes the ipv4 settings of a profile.
func (p *Profile) read(ipv4 properties) {
	p.Method = property[string](ipv4, "method")
	p.IgnoreAutoDNS = property[bool](ipv4, "ignore-auto-dns")
	p.IgnoreAutoRoutes = property[bool](ipv4, "ignore-auto-routes")
	p.NeverDefault = property[bool](ipv4, "never-default")
	p.RouteTable = property[uint32](ipv4, "route-table")
	p.DNS = len(property[[]string](ipv4, "dns-data")) > 0 || len(property[[]uint32](ipv4, "dns")) > 0
}

// property returns a property, or the zero value if it is missing or of another
// type.
func property[T any](props properties, name string) T {
	v, _ := props[name].Value().(T)
	return v
}
