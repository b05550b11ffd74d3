// Package wire reports to the Azure WireServer that this machine is ready.
//
// The WireServer is the host's HTTP service for its guests. Azure shows a machine
// as "Creating", and in the end fails its deployment, until the guest has reported
// that it is ready:
//
//	GET  /machine/?comp=goalstate    an XML document with three identifiers
//	POST /machine/?comp=health       "Ready", with exactly these identifiers
//
// This is the XML endpoint, which is used first. The JSON endpoint needs no goal
// state, and Azure Stack Hub may not have it:
//
//	POST /provisioning/health        {"state":"Ready"}
//
// The protocol has no specification. This package follows what is documented
// and what the agents that are in use do:
//
//   - https://learn.microsoft.com/azure/virtual-machines/linux/no-agent
//   - https://github.com/Azure/WALinuxAgent, azurelinuxagent/common/protocol/wire.py
//   - https://github.com/coreos/afterburn, src/providers/microsoft/azure
//   - https://github.com/Azure/azure-init, libazureinit/src/health.rs (the JSON endpoint)
//
// The package does not log, reads no environment (and so knows no proxy), and
// keeps nothing between two calls. The text of every error has at most 512 bytes,
// all printable, whatever a server sent. The files from top to bottom: reporter.go,
// loop.go, schedule.go, flight.go, answer.go, goalstate.go, health.go.
package wire
