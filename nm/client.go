package nm

import (
	"context"
	"errors"
	"fmt"

	"github.com/Wifx/gonetworkmanager/v2"
	"github.com/godbus/dbus/v5"
)

// Names on the bus that gonetworkmanager does not have: the D-Bus specification
// and NetworkManager's D-Bus reference.
const (
	objectsPath    = "/org/freedesktop"
	managedObjects = "org.freedesktop.DBus.ObjectManager.GetManagedObjects"
	getAll         = "org.freedesktop.DBus.Properties.GetAll"

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

// Client queries NetworkManager over the system bus, and never starts it. Every
// method returns when its context ends, with an error that wraps its cause. Without
// NetworkManager the error is ErrNotRunning.
//
// Names and values are gonetworkmanager's. Its methods take no context, need a round
// trip for each property, and drop the domains of DnsManager.Configuration.
type Client struct {
	conn *dbus.Conn
}

// NewClient returns a client that uses conn.
func NewClient(conn *dbus.Conn) *Client { return &Client{conn: conn} }

// Device returns the device of an IP interface without its profile, in three round
// trips. The error is ErrNoDevice if it does not exist. If the device has no lease,
// it is that of [Snapshot.Device], as several devices can have the same name.
func (c *Client) Device(ctx context.Context, iface string) (Device, error) {
	what := "device " + iface
	var path dbus.ObjectPath
	if err := c.call(ctx, what, managerPath, gonetworkmanager.NetworkManagerGetDeviceByIpIface, &path, iface); err != nil {
		return Device{}, err
	}
	props, err := c.properties(ctx, what, path, ifaceDevice)
	if err != nil {
		return Device{}, err
	}
	// Not Connection.Active.Dhcp4Config: that is "/" before state 100.
	dhcp4, err := c.properties(ctx, what, property[dbus.ObjectPath](props, "Dhcp4Config"), ifaceDHCP4)
	if err != nil && !errors.Is(err, ErrNoDevice) { // the DHCP client may have been stopped meanwhile
		return Device{}, err
	}
	d := newDevice(props, dhcp4, nil)
	d.Interface = iface
	if d.Lease != nil {
		return d, nil
	}
	s, err := c.snapshot(ctx)
	if other, ok := s.Device(iface); ok {
		return other, nil
	}
	return d, err
}

// Devices returns all devices without their profiles, in one round trip.
func (c *Client) Devices(ctx context.Context) ([]Device, error) {
	s, err := c.snapshot(ctx)
	return s.Devices, err
}

// DNSConfig returns what DnsManager.Configuration has for the interface. It is
// empty if NetworkManager wants no nameservers.
func (c *Client) DNSConfig(ctx context.Context, iface string) (DNSConfig, error) {
	props, err := c.properties(ctx, "dns configuration", dnsPath, ifaceDNS)
	return ParseDNSConfig(configuration(props), iface), err
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
	props, err := c.properties(ctx, "ip4 configuration of "+d.Interface, d.ip4Config, ifaceIP4)
	return ip4DNS(props), err
}

// GlobalDNS reports whether NetworkManager has a global DNS configuration, which
// replaces that of all links. DnsManager.Configuration may not have it yet.
func (c *Client) GlobalDNS(ctx context.Context) (bool, error) {
	props, err := c.properties(ctx, "global dns configuration", managerPath, busName)
	return globalDNS(props), err
}

// snapshot reads a snapshot without profiles.
func (c *Client) snapshot(ctx context.Context) (Snapshot, error) {
	var objects map[dbus.ObjectPath]map[string]properties
	err := c.call(ctx, "snapshot", objectsPath, managedObjects, &objects)
	return newSnapshot(objects), err
}

// properties returns the properties of an object; none without a path.
func (c *Client) properties(ctx context.Context, what string, path dbus.ObjectPath, iface string) (props properties, err error) {
	if path == "" || path == "/" {
		return nil, nil
	}
	err = c.call(ctx, what, path, getAll, &props, iface)
	return props, err
}

// call stores the reply of a method in to. D-Bus errors become those of this package.
// For an ended context godbus returns only that it has ended, so its cause is used.
func (c *Client) call(ctx context.Context, what string, path dbus.ObjectPath, method string, to any, args ...any) error {
	err := c.conn.Object(busName, path).CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...).Store(to)
	if err == nil {
		return nil
	}
	e, _ := errors.AsType[dbus.Error](err)
	switch e.Name {
	case errUnknownDevice, errUnknownObject, errUnknownMethod: // removed meanwhile
		err = ErrNoDevice
	case errServiceUnknown, errNameHasNoOwner:
		err = ErrNotRunning
	default:
		if ctx.Err() != nil {
			err = fmt.Errorf("NetworkManager does not answer: %w", context.Cause(ctx))
		}
	}
	return fmt.Errorf("nm: %s: %w", what, err)
}
