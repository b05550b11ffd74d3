// Package cloud is what the cloud's side of a lab does: DHCP, nameservers, WireServer. It runs as PID 1 of that machine.
package cloud

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/namespace"
)

// Addresses of the cloud's side.
const (
	Gateway  = "10.77.0.1"
	Gateway6 = "fd77::1"
	Constant = "168.63.129.16"
	Metadata = "169.254.169.254"
	Other    = "10.77.1.16" // of a WireServer too
)

// link is the bridge to which the guest's interfaces are connected.
const link = "br0"

// Main is the main function of the cloud's PID 1.
func Main() error {
	if err := network(); err != nil {
		return err
	}
	dhcp, err := startDHCP(link)
	if err != nil {
		return err
	}
	names, err := startDNS(netip.MustParseAddr(Constant), netip.MustParseAddr(Gateway), netip.MustParseAddr(Gateway6))
	if err != nil {
		return err
	}
	wire, err := startWire()
	if err != nil {
		return err
	}
	return inside.Serve(map[string]any{"DHCP": dhcp, "DNS": names, "Wire": wire}, nil)
}

// network makes the bridge and the addresses. The kernel may lack dummy links, so the addresses behind the gateway are
// the loopback's, and what gives the bridge a carrier before the guest is there is a cable to nowhere.
func network() error {
	if err := namespace.IP(
		"link set lo up",
		"addr add "+Constant+"/32 dev lo",
		"addr add "+Metadata+"/32 dev lo",
		"addr add "+Other+"/32 dev lo",
		"link add "+link+" address 02:00:0a:4d:00:01 type bridge forward_delay 0 stp_state 0 mcast_snooping 0",
		"addr add "+Gateway+"/24 dev "+link,
		"addr add "+Gateway6+"/64 dev "+link+" nodad",
		"link set "+link+" up",
		"link add idle0 type veth peer name idle1",
		"link set idle1 up",
		"link set idle0 master "+link+" up",
	); err != nil {
		return fmt.Errorf("network of the cloud: %w", err)
	}
	for {
		bridge, err := net.InterfaceByName(link)
		if err != nil || bridge.Flags&net.FlagRunning != 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
