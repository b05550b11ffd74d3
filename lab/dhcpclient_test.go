package lab_test

import (
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// NetworkManager's other DHCP clients. dhclient gives option 245 as it came, and as the text that it makes of unknown options,
// without leading zeros: an option that is text is no address, as from the internal client. dhcpcd gives it a name and dots.
// Debian's NetworkManager 1.52.1 is built without dhclient and 1.58.1 without dhcpcd too: there the internal client is used.
func TestDHCPClients(t *testing.T) {
	t.Parallel()
	text := []byte("168.63.129.16")
	tests := []struct {
		name, suite, client string
		option              []byte
		used                string
		source, server      string
	}{
		{"dhclient", "bookworm", "dhclient", []byte{168, 63, 129, 16}, "dhclient", "option-245", lab.Constant},
		{"dhclient, leading zeros", "bookworm", "dhclient", []byte{10, 77, 1, 16}, "dhclient", "option-245", lab.Other},
		{"dhclient, text", "bookworm", "dhclient", text, "dhclient", "constant", lab.Constant},
		{"dhclient, three bytes", "bookworm", "dhclient", []byte{168, 63, 129}, "dhclient", "constant", lab.Constant},
		{"dhclient", "trixie", "dhclient", []byte{10, 77, 1, 16}, "internal", "option-245", lab.Other},
		{"dhcpcd", "trixie", "dhcpcd", []byte{10, 77, 1, 16}, "dhcpcd", "option-245", lab.Other},
		{"dhcpcd, three bytes", "trixie", "dhcpcd", []byte{168, 63, 129}, "dhcpcd", "constant", lab.Constant},
		{"dhcpcd", "testing", "dhcpcd", []byte{10, 77, 1, 16}, "internal", "option-245", lab.Other},
	}
	for _, tt := range tests {
		t.Run(tt.suite+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			lease := lab.AzureLease().With(lab.OptWireServer, tt.option)
			c := with(quiet(), func(c *lab.Config) { c.Lease, c.NMConf = &lease, "[main]\ndhcp="+tt.client+"\n" })
			l := startProduct(t, tt.suite, c)
			eventually(t, l, "it has checked in", isReady(l, labBoot(t, l)))
			// dhcpcd waits up to a second before it begins, IPv6 is done by then: up comes without a lease, and dhcp4-change later.
			connected(t, l, "eth0")
			ok(t, l.Guest.Settle(t.Context()))
			eventually(t, l, "the client is "+tt.used, prints(l, "Using DHCP client '"+tt.used+"'", "journalctl", "-o", "cat"))
			if tt.used == tt.client {
				eventually(t, l, "it runs", prints(l, tt.client, "ps", "-eo", "args"))
			}
			check(t, l, outcome{requests: once, dns: leaseDNS})
			if rec := checkInRecord(t, l); rec.Source != tt.source || rec.WireServer != tt.server {
				t.Errorf("%s by %s, want %s by %s\n%s", rec.WireServer, rec.Source, tt.server, tt.source,
					run(t, l, "nmcli", "-f", "DHCP4", "device", "show", "eth0"))
			}
		})
	}
}
