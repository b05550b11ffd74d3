package nm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/Wifx/gonetworkmanager/v2"
	"github.com/godbus/dbus/v5"
)

// Names and values of NetworkManager's D-Bus reference.
const (
	busName     = gonetworkmanager.NetworkManagerInterface
	managerPath = gonetworkmanager.NetworkManagerObjectPath
	dnsPath     = gonetworkmanager.DnsManagerObjectPath
	ifaceDNS    = gonetworkmanager.DnsManagerInterface
	ifaceDevice = gonetworkmanager.DeviceInterface
	ifaceDHCP4  = gonetworkmanager.DHCP4ConfigInterface
	ifaceIP4    = gonetworkmanager.IP4ConfigInterface
	ifaceActive = gonetworkmanager.ActiveConnectionInterface

	flagExternal = 0x80 // NM_ACTIVATION_STATE_FLAG_EXTERNAL
)

// Values of Device.State, NMDeviceState.
const (
	StateUnmanaged    = uint32(gonetworkmanager.NmDeviceStateUnmanaged)
	StateUnavailable  = uint32(gonetworkmanager.NmDeviceStateUnavailable)
	StateDisconnected = uint32(gonetworkmanager.NmDeviceStateDisconnected)
	StateActivated    = uint32(gonetworkmanager.NmDeviceStateActivated)
)

// Device is a device with its DHCPv4 lease.
type Device struct {
	Interface string // the IP interface, or the device's own where there is none yet
	Managed   bool
	State     uint32 // NMDeviceState; at the first dhcp4-change it is 70
	Reason    uint32 // NMDeviceStateReason
	Lease     *Lease // nil if there is no DHCPv4 lease, or not yet
	External  bool   // configured by another program
	Profile   Profile
	// IP4DNS is what the device's IP4Config has: the servers of the profile and of the
	// lease, after ipv4.ignore-auto-dns. NetworkManager 1.42.4 can lose the entry of
	// DnsManager.Configuration of an activated device, while IP4Config still has them.
	IP4DNS DNSConfig

	settings dbus.ObjectPath
}

// Profile is a device's active connection profile, of which [Read] has only the name.
type Profile struct {
	Name             string // "" if no profile is active
	Method           string // ipv4.method
	DNS              bool   // it has nameservers of its own, ipv4.dns
	IgnoreAutoDNS    bool   // ipv4.ignore-auto-dns
	IgnoreAutoRoutes bool   // ipv4.ignore-auto-routes
	NeverDefault     bool   // ipv4.never-default
	RouteTable       uint32 // ipv4.route-table; 0 for the main table
}

// Snapshot is the state of NetworkManager and its devices at one moment.
type Snapshot struct {
	Version       string
	DNSMode       string           // DnsManager.Mode: "default", "none", "systemd-resolved", ...
	RcManager     string           // DnsManager.RcManager: who writes resolv.conf
	GlobalDNS     bool             // there is a global DNS configuration, which replaces that of all devices
	Configuration []map[string]any // of DnsManager, see [ParseDNSConfig]
	Devices       []Device
}

// Device returns the device of an interface. Of several with the same name (an Open
// vSwitch bridge, its port and its interface) it is the one with the lease.
func (s Snapshot) Device(iface string) (found Device, ok bool) {
	for _, d := range s.Devices {
		if d.Interface == iface && (!ok || d.Lease != nil) {
			found, ok = d, true
		}
	}
	return found, ok
}

// DNSConfig returns the DNS configuration that NetworkManager wants for the interface.
// DnsManager.Configuration may not have the global one yet, so its own property counts.
func (s Snapshot) DNSConfig(iface string) DNSConfig {
	if s.GlobalDNS {
		return DNSConfig{Global: true}
	}
	return ParseDNSConfig(s.Configuration, iface)
}

// ErrNotRunning is returned if NetworkManager's name on the bus has no owner.
var ErrNotRunning = errors.New("NetworkManager is not running")

// Read reads NetworkManager's state without profiles, in one round trip. It does not
// start NetworkManager: without it the error is ErrNotRunning. If ctx has ended, the
// error wraps its cause.
//
// Names and values are gonetworkmanager's. Its methods take no context, need a round
// trip for each property, and drop the domains of DnsManager.Configuration.
func Read(ctx context.Context, conn *dbus.Conn) (Snapshot, error) {
	var objects map[dbus.ObjectPath]map[string]properties
	err := call(ctx, conn, "/org/freedesktop", "org.freedesktop.DBus.ObjectManager.GetManagedObjects", &objects)
	return newSnapshot(objects), err
}

// ReadWithProfiles is Read with one more round trip for each active profile. A profile
// that cannot be read, because it is private to a user, has only a name.
func ReadWithProfiles(ctx context.Context, conn *dbus.Conn) (Snapshot, error) {
	s, err := Read(ctx, conn)
	for i := range s.Devices {
		d := &s.Devices[i]
		var settings map[string]properties
		if d.settings != "" && call(ctx, conn, d.settings, gonetworkmanager.ConnectionGetSettings, &settings) == nil {
			d.Profile.add(settings["ipv4"])
		}
	}
	return s, err
}

// call stores the reply of a method in to. For an ended context godbus returns only
// that it has ended, so its cause is used.
func call(ctx context.Context, conn *dbus.Conn, path dbus.ObjectPath, method string, to any) error {
	err := conn.Object(busName, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart).Store(to)
	if err == nil {
		return nil
	}
	e, _ := errors.AsType[dbus.Error](err)
	switch {
	case e.Name == "org.freedesktop.DBus.Error.ServiceUnknown", e.Name == "org.freedesktop.DBus.Error.NameHasNoOwner":
		err = ErrNotRunning
	case ctx.Err() != nil:
		err = fmt.Errorf("NetworkManager does not answer: %w", context.Cause(ctx))
	}
	return fmt.Errorf("nm: %w", err)
}

type properties = map[string]dbus.Variant

// newSnapshot decodes the properties of all objects, by path and interface.
func newSnapshot(objects map[dbus.ObjectPath]map[string]properties) Snapshot {
	manager, dns := objects[managerPath][busName], objects[dnsPath][ifaceDNS]
	s := Snapshot{
		Version: property[string](manager, "Version"), GlobalDNS: len(property[properties](manager, "GlobalDnsConfiguration")) > 0,
		DNSMode: property[string](dns, "Mode"), RcManager: property[string](dns, "RcManager"),
	}
	for _, entry := range property[[]properties](dns, "Configuration") {
		s.Configuration = append(s.Configuration, plain(entry))
	}
	for _, path := range slices.Sorted(maps.Keys(objects)) {
		if p, ok := objects[path][ifaceDevice]; ok {
			// Not Connection.Active.Dhcp4Config: that is "/" before state 100.
			dhcp4 := objects[property[dbus.ObjectPath](p, "Dhcp4Config")][ifaceDHCP4]
			ip4 := objects[property[dbus.ObjectPath](p, "Ip4Config")][ifaceIP4]
			active := objects[property[dbus.ObjectPath](p, "ActiveConnection")][ifaceActive]
			s.Devices = append(s.Devices, newDevice(p, dhcp4, ip4, active))
		}
	}
	return s
}

// newDevice decodes the properties of a device, of its DHCP4Config and IP4Config and of
// its active connection, where there are any.
func newDevice(p, dhcp4, ip4, active properties) Device {
	d := Device{
		// The lease belongs to the IP interface, which is not the device's own for
		// PPP and the like.
		Interface: cmp.Or(property[string](p, "IpInterface"), property[string](p, "Interface")),
		Managed:   property[bool](p, "Managed"),
		State:     property[uint32](p, "State"),
		External:  property[uint32](active, "StateFlags")&flagExternal != 0,
		Profile:   Profile{Name: property[string](active, "Id")},
		settings:  property[dbus.ObjectPath](active, "Connection"),
	}
	if pair := property[[]any](p, "StateReason"); len(pair) == 2 {
		d.Reason, _ = pair[1].(uint32)
	}
	if options := property[properties](dhcp4, "Options"); len(options) > 0 {
		lease := ParseLease(plain(options))
		d.Lease = &lease
	}
	var servers []string
	for _, s := range property[[]properties](ip4, "NameserverData") {
		servers = append(servers, property[string](s, "address"))
	}
	d.IP4DNS.add(servers, property[[]string](ip4, "Domains"))
	return d
}

// add adds the settings of the section ipv4.
func (p *Profile) add(ipv4 properties) {
	p.Method = property[string](ipv4, "method")
	p.DNS = len(property[[]string](ipv4, "dns-data")) > 0 || len(property[[]uint32](ipv4, "dns")) > 0
	p.IgnoreAutoDNS = property[bool](ipv4, "ignore-auto-dns")
	p.IgnoreAutoRoutes = property[bool](ipv4, "ignore-auto-routes")
	p.NeverDefault = property[bool](ipv4, "never-default")
	p.RouteTable = property[uint32](ipv4, "route-table")
}

func plain(props properties) map[string]any {
	out := make(map[string]any, len(props))
	for k, v := range props {
		out[k] = v.Value()
	}
	return out
}

// property returns a property, or the zero value if it is missing or of another
// type.
func property[T any](props properties, name string) T {
	v, _ := props[name].Value().(T)
	return v
}

// DNSConfig is the DNS configuration that NetworkManager wants for a link. It
// honours ipv4.ignore-auto-dns, ipv4.dns, global-dns and similar settings, and does
// not depend on the DNS mode.
type DNSConfig struct {
	Nameservers []netip.Addr // of both address families, each in NetworkManager's order
	Domains     []string     // search domains, without duplicates (ignoring case)
	// Other has servers that are not plain addresses (DNS over TLS with a
	// name, another port), as NetworkManager spells them.
	Other []string
	// Global reports whether a global DNS configuration replaces that of all
	// links. All other fields are then empty.
	Global bool
	// Excluded reports whether the link has no entry because that of another
	// interface has a negative priority (ipv4.dns-priority).
	Excluded bool
}

// Empty reports whether NetworkManager wants no nameserver at all.
func (w DNSConfig) Empty() bool { return len(w.Nameservers) == 0 && len(w.Other) == 0 }

// ParseDNSConfig merges the entries of DnsManager.Configuration for one
// interface: NetworkManager makes one for each address family, none for a
// family without servers, and entries without an interface for global-dns,
// which replace all others, even where those are listed beside them (seen with
// 1.42.4).
func ParseDNSConfig(configuration []map[string]any, iface string) DNSConfig {
	var w DNSConfig
	excluded := false
	for _, entry := range configuration {
		switch entry["interface"] {
		case nil, "":
			return DNSConfig{Global: true}
		case iface:
			servers, _ := entry["nameservers"].([]string)
			domains, _ := entry["domains"].([]string)
			w.add(servers, domains)
		default:
			priority, _ := entry["priority"].(int32)
			excluded = excluded || priority < 0
		}
	}
	w.Excluded = excluded && w.Empty()
	return w
}

func (w *DNSConfig) add(servers, domains []string) {
	for _, s := range servers {
		a, err := netip.ParseAddr(s)
		a = a.WithZone("").Unmap()
		switch {
		case err != nil:
			w.Other = append(w.Other, s)
		case !slices.Contains(w.Nameservers, a):
			w.Nameservers = append(w.Nameservers, a)
		}
	}
	for _, d := range domains {
		if !slices.ContainsFunc(w.Domains, func(have string) bool { return strings.EqualFold(have, d) }) {
			w.Domains = append(w.Domains, d)
		}
	}
}
