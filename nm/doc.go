// Package nm reads what NetworkManager says: the event that its dispatcher
// hands to a script, the DHCPv4 lease of a device, and the DNS settings that
// NetworkManager wishes a link to have.
//
// It changes nothing in NetworkManager and parses no lease file. Decoding takes
// plain values; only client.go speaks D-Bus.
package nm
