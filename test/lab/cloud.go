package lab

import (
	"context"
	"encoding/json"
	"net/netip"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/cloud"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// What the cloud's servers give and log.
type (
	Lease       = cloud.Lease
	DHCPMessage = cloud.DHCPMessage
	DNSQuery    = cloud.DNSQuery
	DNSFault    = cloud.Fault
	WireRequest = wiretest.Request
	WireScript  = wiretest.Script
	WireStep    = wiretest.Step
)

// Faults of a nameserver.
const (
	DNSHealthy  = cloud.Healthy
	DNSSilent   = cloud.Silent
	DNSRefuse   = cloud.Refuse
	DNSTruncate = cloud.Truncate
)

// DHCP options that tests change.
const (
	OptSubnetMask     = cloud.OptSubnetMask
	OptRouter         = cloud.OptRouter
	OptNameservers    = cloud.OptNameservers
	OptDomain         = cloud.OptDomain
	OptDomainSearch   = cloud.OptDomainSearch
	OptClasslessRoute = cloud.OptClasslessRoute
	OptWireServer     = cloud.OptWireServer
)

// Addresses of the cloud: the nameservers are Constant, Gateway and Gateway6; the WireServer answers at every one.
const (
	Gateway  = cloud.Gateway
	Gateway6 = cloud.Gateway6
	Constant = cloud.Constant
	Other    = cloud.Other
)

// AzureLease is what Azure's DHCP server sends to the primary NIC.
func AzureLease() Lease { return cloud.AzureLease() }

// Cloud is the side of the lab with the servers. It has no root of its own: what is run there are the host's programs,
// in the cloud's network.
type Cloud struct{ *Machine }

// SetLease sets what the guest's NIC of that name gets from now on; an empty name is for all without a lease of their
// own.
func (c *Cloud) SetLease(ctx context.Context, nic string, lease Lease) error {
	mac := ""
	if nic != "" {
		mac = MAC(nic)
	}
	return c.call(ctx, "DHCP.Set", cloud.DHCPSetting{MAC: mac, Lease: lease}, nil)
}

// DHCPLog is every DHCP message that came or went.
func (c *Cloud) DHCPLog(ctx context.Context) ([]DHCPMessage, error) {
	var log []DHCPMessage
	err := c.call(ctx, "DHCP.Log", inside.None{}, &log)
	return log, err
}

// SetName makes the nameservers know a name.
func (c *Cloud) SetName(ctx context.Context, name, addr string) error {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return err
	}
	return c.call(ctx, "DNS.SetName", cloud.DNSName{Name: name, Addr: a}, nil)
}

// SetDNSFault sets what is wrong with the nameserver at an address.
func (c *Cloud) SetDNSFault(ctx context.Context, server string, fault DNSFault) error {
	a, err := netip.ParseAddr(server)
	if err != nil {
		return err
	}
	return c.call(ctx, "DNS.SetFault", cloud.DNSFault{Server: a, Fault: fault}, nil)
}

// Queries is every query that a nameserver got.
func (c *Cloud) Queries(ctx context.Context) ([]DNSQuery, error) {
	var log []DNSQuery
	err := c.call(ctx, "DNS.Log", inside.None{}, &log)
	return log, err
}

// Requests is every request that the WireServer got.
func (c *Cloud) Requests(ctx context.Context) ([]WireRequest, error) {
	var log []WireRequest
	err := c.call(ctx, "Wire.Log", inside.None{}, &log)
	return log, err
}

// PlayWire makes the WireServer answer by a script from now on. It cuts the connections that there are.
func (c *Cloud) PlayWire(ctx context.Context, script WireScript) error {
	b, err := json.Marshal(script)
	if err != nil {
		return err
	}
	return c.call(ctx, "Wire.Play", string(b), nil)
}

// CloseWire makes the WireServer refuse connections, until PlayWire.
func (c *Cloud) CloseWire(ctx context.Context) error {
	return c.call(ctx, "Wire.Close", inside.None{}, nil)
}

// DropWire makes packets to the WireServer's usual address vanish, or arrive again.
func (c *Cloud) DropWire(ctx context.Context, drop bool) error {
	verb := "add"
	if drop {
		verb = "del" // nobody's, and the cloud forwards nothing
	}
	return c.ip(ctx, "addr "+verb+" "+Constant+"/32 dev lo")
}
