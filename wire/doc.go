// Package wire tells the Azure WireServer that this machine is up.
//
// The WireServer is the host's HTTP service for its guests, at 168.63.129.16
// or where DHCP option 245 says. Azure shows a machine as "Creating", and in
// the end fails its deployment, until the guest has reported that it is ready:
//
//	GET  /machine/?comp=goalstate    an XML document with three identifiers
//	POST /machine/?comp=health       "Ready", with exactly these identifiers
//
// There is a shorter way, which needs no goal state, and which Azure Stack Hub
// may not have:
//
//	POST /provisioning/health        {"state":"Ready"}
//
// [Reporter.Report] does that, and tries again, until one of the two was
// accepted or its context ends. It takes the portable way first.
//
// The protocol has no specification. This package follows what is documented
// and what the agents that are in use do:
//
//   - https://learn.microsoft.com/azure/virtual-machines/linux/no-agent
//   - https://github.com/Azure/WALinuxAgent, azurelinuxagent/common/protocol/wire.py
//   - https://github.com/coreos/afterburn, src/providers/microsoft/azure
//   - https://github.com/Azure/azure-init, libazureinit/src/health.rs (the short way)
//
// The package does not log, reads no environment (and so knows no proxy), and
// keeps nothing between two calls.
package wire
