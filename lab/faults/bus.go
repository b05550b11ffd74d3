package faults

import "github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"

// startBus puts a dbus-daemon where the system bus is, and NetworkManager on it: the one interface, lo, has a lease with
// that option 245. There is neither resolved nor systemd.
func startBus(option245 string) (*bustest.Bus, error) {
	bus, err := bustest.Start("/run/dbus/system_bus_socket")
	if err != nil {
		return nil, err
	}
	_, err = bus.ExportNetworkManager([]bustest.Device{{Interface: "lo", State: 100, Options: map[string]string{
		"ip_address": "10.0.0.4", "routers": "10.0.0.1", "private_245": option245, "domain_name_servers": constant,
	}}}, nil)
	return bus, err
}
