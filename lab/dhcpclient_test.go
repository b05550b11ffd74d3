package lab_test

import (
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// NetworkManager's other DHCP clients, where Debian's is built with them. dhclient gives option 245 as the text that it makes
// of unknown options, without leading zeros, and as it came.
func TestDHCPClients(t *testing.T) {
	t.Parallel()
	text := []byte("168.63.129.16")
	tests := []struct {
		name, suite, client string
		option              []byte
		source, server      string
	}{
		{"dhclient", "bookworm", "dhclient", []byte{168, 63, 129, 16}, "option-245", lab.Constant},
		{"dhclient, leading zeros", "bookworm", "dhclient", []byte{10, 77, 1, 16}, "option-245", lab.Other},
		{"dhclient, text", "bookworm", "dhclient", text, "constant", lab.Constant},
		{"dhclient, three bytes", "bookworm", "dhclient", []byte{168, 63, 129}, "constant", lab.Constant},
		{"dhcpcd", "trixie", "dhcpcd", []byte{10, 77, 1, 16}, "option-245", lab.Other},
	}
	for _, tt := range tests {
		t.Run(tt.suite+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			lease := lab.AzureLease().With(lab.OptWireServer, tt.option)
			c := with(quiet(), func(c *lab.Config) { c.Lease, c.NMConf = &lease, "[main]\ndhcp="+tt.client+"\n" })
			l := startProduct(t, tt.suite, c)
			up(t, l, "eth0")
			eventually(t, l, "the client is "+tt.client, prints(l, tt.client, "ps", "-eo", "args"))
			eventually(t, l, "it has checked in", isReady(l, labBoot(t, l)))
			if rec := checkInRecord(t, l); rec.Source != tt.source || rec.WireServer != tt.server {
				t.Errorf("%s by %s, want %s by %s\n%s", rec.WireServer, rec.Source, tt.server, tt.source,
					run(t, l, "nmcli", "-f", "DHCP4", "device", "show", "eth0"))
			}
		})
	}
}
