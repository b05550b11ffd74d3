package nm

import (
	"context"
	"errors"
	"fmt"

	"github.com/Wifx/gonetworkmanager/v2"
	"github.com/godbus/dbus/v5"
)

// Names on the bus: NetworkManager's D-Bus reference, and org.freedesktop.DBus.*
// in the D-Bus specification.
const (
	busName       = gonetworkmanager.NetworkManagerInterface
	managerPath   = gonetworkmanager.NetworkManagerObjectPath
	device        = gonetworkmanager.DeviceInterface
	byIPInterface = gonetworkmanager.NetworkManagerGetDeviceByIpIface
	dhcp4Config   = gonetworkmanager.DHCP4ConfigInterface
	ip4Config     = gonetworkmanager.IP4ConfigInterface
	dnsManager    = gonetworkmanager.DnsManagerInterface
	dnsPath       = gonetworkmanager.DnsManagerObjectPath
	propertiesGet = "org.freedesktop.DBus.Properties.Get"
	propertiesAll = "org.freedesktop.DBus.Properties.GetAll"
)

// Names of D-Bus errors that the callers of this package branch on.
const (
	errUnknownDevice  = "org.freedesktop.NetworkManager.UnknownDevice"
	errUnknownObject  = "org.freedesktop.DBus.Error.UnknownObject"
	errUnknownMethod  = "org.freedesktop.DBus.Error.UnknownMethod"
	errServiceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
	errNameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
)

// ErrNoDevice is returned if NetworkManager has no such device, or no longer has it.
var ErrNoDevice = errors.New("NetworkManager does not know the device")

// ErrNotRunning is returned if NetworkManager's name on the bus has no owner.
var ErrNotRunning = errors.New("NetworkManager is not running")

// Device is a device and its DHCPv4 lease.
type Device struct {
	Interface string // the IP interface
	// Activated reports whether the device is in state 100. At the first
	// dhcp4-change it is in state 70.
	Activated bool
	// Lease is nil if there is no DHCPv4 lease, or not yet.
	Lease *Lease

	ip4Config dbus.ObjectPath
}

// Client queries NetworkManager over the system bus. Every method returns when its
// context ends, with an error that wraps its cause. Without NetworkManager the
// error is ErrNotRunning.
//
// The names and states are gonetworkmanager's. Its methods take no context, need
// a round trip for each property, and drop the domains of
// DnsManager.Configuration.
type Client struct {
	conn *dbus.Conn
}

// NewClient returns a client that uses conn.
func NewClient(conn *dbus.Conn) *Client { return &Client{conn: conn} }

// Device returns the device of an IP interface. The error is ErrNoDevice if it
// does not exist. Of several devices with the same name (an Open vSwitch bridge, its
// port and its interface) it returns the one with the lease.
func (c *Client) Device(ctx context.Context, iface string) (Device, error) {
	var path dbus.ObjectPath
	if err := c.call(ctx, managerPath, byIPInterface, iface).Store(&path); err != nil {
		return Device{}, wrap(ctx, "device "+iface, err)
	}
	d, err := c.read(ctx, path)
	if err != nil {
		return Device{}, wrap(ctx, "device "+iface, err)
	}
	d.Interface = iface
	if d.Lease != nil {
		return d, nil
	}
	all, err := c.Devices(ctx)
	for _, other := range all {
		if other.Interface == iface {
			return other, nil
		}
	}
	return d, err
}

// Devices returns every device that has a DHCPv4 lease. Devices that are
// removed meanwhile are omitted.
func (c *Client) Devices(ctx context.Context) ([]Device, error) {
	var paths []dbus.ObjectPath
	if err := c.get(ctx, managerPath, busName, "Devices", &paths); err != nil {
		return nil, wrap(ctx, "devices", err)
	}
	var out []Device
	for _, path := range paths {
		d, err := c.read(ctx, path)
		if err != nil && !gone(err) {
			return nil, wrap(ctx, "devices", err)
		}
		if err == nil && d.Lease != nil && d.Interface != "" {
			out = append(out, d)
		}
	}
	return out, nil
}

// read reads the state and the path of the lease in one call, then the lease.
func (c *Client) read(ctx context.Context, path dbus.ObjectPath) (Device, error) {
	props, err := c.all(ctx, path, device)
	if err != nil {
		return Device{}, err
	}
	d := Device{
		// The lease belongs to the IP interface, which is not the device's own for
		// PPP and the like.
		Interface: property[string](props, "IpInterface"),
		Activated: property[uint32](props, "State") == StateActivated,
		ip4Config: property[dbus.ObjectPath](props, "Ip4Config"),
	}
	// Not Connection.Active.Dhcp4Config: that is "/" before state 100.
	config := property[dbus.ObjectPath](props, "Dhcp4Config")
	if config == "" || config == "/" {
		return d, nil
	}
	var options properties
	err = c.get(ctx, config, dhcp4Config, "Options", &options)
	if err != nil && !gone(err) { // the DHCP client may have been stopped meanwhile
		return Device{}, err
	}
	if len(options) > 0 {
		lease := ParseLease(plain(options))
		d.Lease = &lease
	}
	return d, nil
}

// DNSConfig returns what DnsManager.Configuration has for the interface. It is
// empty if NetworkManager wants no nameservers.
func (c *Client) DNSConfig(ctx context.Context, iface string) (DNSConfig, error) {
	var raw []properties
	if err := c.get(ctx, dnsPath, dnsManager, "Configuration", &raw); err != nil {
		return DNSConfig{}, wrap(ctx, "dns configuration", err)
	}
	entries := make([]map[string]any, len(raw))
	for i, r := range raw {
		entries[i] = plain(r)
	}
	return ParseDNSConfig(entries, iface), nil
}

// IP4DNSConfig returns what the IP4Config of a device from [Client.Device] has:
// the servers of the profile and of the lease, after ipv4.ignore-auto-dns.
//
// NetworkManager 1.42.4 loses a link's entry of DnsManager.Configuration on a
// reapply after ipv6.method was changed, and then empties the link in resolved,
// while IP4Config still has the servers. Use it for a link without an entry,
// unless the link is excluded, and not before the device has been up for some
// time: the entry that excludes it may follow later (global-dns on 1.42.4).
func (c *Client) IP4DNSConfig(ctx context.Context, d Device) (DNSConfig, error) {
	if d.ip4Config == "" || d.ip4Config == "/" {
		return DNSConfig{}, nil
	}
	props, err := c.all(ctx, d.ip4Config, ip4Config)
	if err != nil {
		return DNSConfig{}, wrap(ctx, "ip4 configuration of "+d.Interface, err)
	}
	var servers []string
	for _, s := range property[[]properties](props, "NameserverData") {
		servers = append(servers, property[string](s, "address"))
	}
	if len(servers) == 0 {
		return DNSConfig{}, nil
	}
	return ParseDNSConfig([]map[string]any{{
		keyDNSInterface: d.Interface, keyDNSNameservers: servers, keyDNSDomains: property[[]string](props, "Domains"),
	}}, d.Interface), nil
}

// GlobalDNS reports whether NetworkManager has a global DNS configuration, which
// replaces that of all links. DnsManager.Configuration may not have it yet.
func (c *Client) GlobalDNS(ctx context.Context) (bool, error) {
	var config properties
	err := c.get(ctx, managerPath, busName, "GlobalDnsConfiguration", &config)
	return len(config) > 0, wrap(ctx, "global dns configuration", err)
}

func (c *Client) call(ctx context.Context, path dbus.ObjectPath, method string, args ...any) *dbus.Call {
	return c.conn.Object(busName, path).CallWithContext(ctx, method, 0, args...)
}

// get stores one property.
func (c *Client) get(ctx context.Context, path dbus.ObjectPath, iface, name string, to any) error {
	var v dbus.Variant
	if err := c.call(ctx, path, propertiesGet, iface, name).Store(&v); err != nil {
		return err
	}
	if err := v.Store(to); err != nil {
		return fmt.Errorf("%s has signature %s: %w", name, v.Signature(), err)
	}
	return nil
}

func (c *Client) all(ctx context.Context, path dbus.ObjectPath, iface string) (props properties, err error) {
	return props, c.call(ctx, path, propertiesAll, iface).Store(&props)
}

func plain(props properties) map[string]any {
	out := make(map[string]any, len(props))
	for k, v := range props {
		out[k] = v.Value()
	}
	return out
}

// gone reports whether the object was removed meanwhile.
func gone(err error) bool {
	switch errorName(err) {
	case errUnknownDevice, errUnknownObject, errUnknownMethod:
		return true
	}
	return false
}

// wrap maps D-Bus error names to the errors of this package. For an ended context
// godbus returns only that it has ended, so its cause is used.
func wrap(ctx context.Context, what string, err error) error {
	switch name := errorName(err); {
	case err == nil:
		return nil
	case gone(err):
		return fmt.Errorf("nm: %s: %w", what, ErrNoDevice)
	case name == errServiceUnknown || name == errNameHasNoOwner:
		return fmt.Errorf("nm: %s: %w", what, ErrNotRunning)
	case ctx.Err() != nil:
		return fmt.Errorf("nm: %s: NetworkManager does not answer: %w", what, context.Cause(ctx))
	}
	return fmt.Errorf("nm: %s: %w", what, err)
}

func errorName(err error) string {
	if e, ok := errors.AsType[dbus.Error](err); ok {
		return e.Name
	}
	return ""
}
