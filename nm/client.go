package nm

import (
	"context"
	"errors"
	"fmt"

	"github.com/Wifx/gonetworkmanager/v2"
	"github.com/godbus/dbus/v5"
)

// Names on the bus: org.freedesktop.NetworkManager in NetworkManager's D-Bus
// reference, org.freedesktop.DBus.Properties in the D-Bus specification.
const (
	busName        = "org.freedesktop.NetworkManager"
	dnsManagerPath = "/org/freedesktop/NetworkManager/DnsManager"
	dnsManager     = "org.freedesktop.NetworkManager.DnsManager"
	propertiesGet  = "org.freedesktop.DBus.Properties.Get"
)

// Names of D-Bus errors that the callers of this package branch on.
const (
	errUnknownDevice  = "org.freedesktop.NetworkManager.UnknownDevice"
	errUnknownObject  = "org.freedesktop.DBus.Error.UnknownObject"
	errUnknownMethod  = "org.freedesktop.DBus.Error.UnknownMethod"
	errServiceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
	errNameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
)

// ErrNoDevice says that NetworkManager knows no such device, or none any more.
var ErrNoDevice = errors.New("NetworkManager does not know the device")

// ErrNotRunning says that nobody owns NetworkManager's name on the bus.
var ErrNotRunning = errors.New("NetworkManager is not running")

// stateActivated is NM_DEVICE_STATE_ACTIVATED.
const stateActivated = gonetworkmanager.NmDeviceStateActivated

// Device is a device as far as its DHCPv4 lease goes.
type Device struct {
	Interface string
	// Activated says that the device is in state 100. On a first
	// dhcp4-change it is not yet (70).
	Activated bool
	// Lease is nil if there is no DHCPv4 lease, or not yet.
	Lease *Lease
}

// Client asks NetworkManager over the system bus.
//
// gonetworkmanager takes no context and uses the process-wide connection that
// dbus.SystemBus returns; the caller opens that connection first. Every method
// returns when its context ends, even if the library's call does not.
type Client struct {
	conn *dbus.Conn
}

// NewClient returns a client that reads over conn, which must be the one that
// dbus.SystemBus returns.
func NewClient(conn *dbus.Conn) *Client { return &Client{conn: conn} }

// Device returns the device of an IP interface. The error is ErrNoDevice if it
// is gone, ErrNotRunning without NetworkManager, or the context's.
func (c *Client) Device(ctx context.Context, iface string) (Device, error) {
	return within(ctx, "device "+iface, func() (Device, error) {
		nm, err := gonetworkmanager.NewNetworkManager()
		if err != nil {
			return Device{}, err
		}
		dev, err := nm.GetDeviceByIpIface(iface)
		if err != nil {
			return Device{}, err
		}
		d, err := read(dev, iface)
		if err != nil && ifStillThere(err) == nil {
			return Device{}, ErrNoDevice
		}
		return d, err
	})
}

// Devices returns every device that has a DHCPv4 lease. Devices that vanish
// meanwhile are left out.
func (c *Client) Devices(ctx context.Context) ([]Device, error) {
	return within(ctx, "devices", func() ([]Device, error) {
		nm, err := gonetworkmanager.NewNetworkManager()
		if err != nil {
			return nil, err
		}
		all, err := nm.GetPropertyDevices()
		if err != nil {
			return nil, err
		}
		var out []Device
		for _, dev := range all {
			// The lease belongs to the IP interface, which is not the
			// device's own for PPP and the like.
			iface, err := dev.GetPropertyIpInterface()
			if err != nil || iface == "" {
				continue
			}
			if d, err := read(dev, iface); err == nil && d.Lease != nil {
				out = append(out, d)
			}
		}
		return out, nil
	})
}

// read takes the state before the lease: a device that was activated then
// keeps its lease, while the other order could miss one that came between.
func read(dev gonetworkmanager.Device, iface string) (Device, error) {
	state, err := dev.GetPropertyState()
	if err != nil {
		return Device{}, err
	}
	d := Device{Interface: iface, Activated: state == stateActivated}
	// Not Connection.Active.Dhcp4Config: that is "/" before state 100. The
	// library returns (nil, nil) for "/".
	config, err := dev.GetPropertyDHCP4Config()
	if err != nil || config == nil {
		return d, err
	}
	options, err := config.GetPropertyOptions()
	if err != nil || len(options) == 0 {
		return d, ifStillThere(err) // the DHCP client may have been stopped meanwhile
	}
	lease := ParseLease(options)
	d.Lease = &lease
	return d, nil
}

// Wish returns what NetworkManager wants the interface to have; an empty Wish
// if it wants nothing.
//
// NetworkManager 1.42.4 loses a link's entry of DnsManager.Configuration on a
// reapply after ipv6.method was changed, and then empties the link in resolved,
// while IP4Config still has the servers. So a link without an entry that nothing
// overrules is looked up there. Not before the device has been up for a while:
// what is to overrule its entry may still be on its way (global-dns on 1.42.4).
func (c *Client) Wish(ctx context.Context, iface string) (DNSConfig, error) {
	entries, err := c.entries(ctx)
	if err != nil {
		return DNSConfig{}, err
	}
	if w := ParseDNSConfig(entries, iface); !w.Empty() || Overruled(entries) {
		return w, nil
	}
	return within(ctx, "ip4 configuration of "+iface, func() (DNSConfig, error) { return configured(iface) })
}

// Entry returns what DnsManager.Configuration has for the interface and no more:
// one question.
func (c *Client) Entry(ctx context.Context, iface string) (DNSConfig, error) {
	entries, err := c.entries(ctx)
	return ParseDNSConfig(entries, iface), err
}

// entries reads DnsManager.Configuration, plainly: gonetworkmanager's getter
// drops the domains.
func (c *Client) entries(ctx context.Context) ([]map[string]any, error) {
	const what = "dns configuration"
	var v dbus.Variant
	obj := c.conn.Object(busName, dnsManagerPath)
	err := obj.CallWithContext(ctx, propertiesGet, 0, dnsManager, "Configuration").Store(&v)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // godbus says only that the context has ended
	}
	if err != nil {
		return nil, wrap(what, err)
	}
	entries, err := asMaps(v)
	return entries, wrap(what, err)
}

// configured reads what IP4Config has: the profile's servers and the lease's
// together, after ipv4.ignore-auto-dns.
func configured(iface string) (DNSConfig, error) {
	nm, err := gonetworkmanager.NewNetworkManager()
	if err != nil {
		return DNSConfig{}, err
	}
	dev, err := nm.GetDeviceByIpIface(iface)
	if err != nil {
		return DNSConfig{}, ifStillThere(err)
	}
	config, err := dev.GetPropertyIP4Config()
	if err != nil || config == nil {
		return DNSConfig{}, ifStillThere(err)
	}
	servers, err := config.GetPropertyNameserverData()
	if err != nil || len(servers) == 0 {
		return DNSConfig{}, ifStillThere(err)
	}
	domains, err := config.GetPropertyDomains()
	if err != nil {
		return DNSConfig{}, ifStillThere(err)
	}
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.Address
	}
	return ParseDNSConfig([]map[string]any{{
		keyDNSInterface: iface, keyDNSNameservers: addresses, keyDNSDomains: domains,
	}}, iface), nil
}

// ifStillThere drops an error that says that the object has gone meanwhile.
func ifStillThere(err error) error {
	switch errorName(err) {
	case errUnknownDevice, errUnknownObject, errUnknownMethod:
		return nil
	}
	return err
}

func asMaps(v dbus.Variant) ([]map[string]any, error) {
	raw, ok := v.Value().([]map[string]dbus.Variant)
	if !ok {
		return nil, fmt.Errorf("signature %s, want aa{sv}", v.Signature())
	}
	entries := make([]map[string]any, len(raw))
	for i, r := range raw {
		entries[i] = make(map[string]any, len(r))
		for k, v := range r {
			entries[i][k] = v.Value()
		}
	}
	return entries, nil
}

// within runs f, which takes no context, and leaves it behind when ctx ends.
func within[T any](ctx context.Context, what string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, wrap(what, r.err)
	case <-ctx.Done():
		var zero T
		return zero, fmt.Errorf("nm: %s: NetworkManager does not answer: %w", what, context.Cause(ctx))
	}
}

// wrap turns D-Bus error names into the sentinels of this package.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	switch errorName(err) {
	case errUnknownDevice, errUnknownObject:
		return fmt.Errorf("nm: %s: %w", what, ErrNoDevice)
	case errServiceUnknown, errNameHasNoOwner:
		return fmt.Errorf("nm: %s: %w", what, ErrNotRunning)
	}
	return fmt.Errorf("nm: %s: %w", what, err)
}

func errorName(err error) string {
	if e, ok := errors.AsType[dbus.Error](err); ok {
		return e.Name
	}
	return ""
}
