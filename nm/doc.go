// Package nm reads from NetworkManager: the event that its dispatcher passes to a
// script, the DHCPv4 lease of a device, and the DNS configuration that
// NetworkManager wants for a link.
//
// It changes nothing in NetworkManager and parses no lease files. Parsing functions
// take plain values; only snapshot.go uses D-Bus.
package nm
