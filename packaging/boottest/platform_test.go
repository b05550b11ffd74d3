package boottest_test

import (
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/boottest"
)

func TestPlatform(t *testing.T) {
	tests := []struct {
		name, cmdline, tag, timer string
		azure                     bool
	}{
		{"argument", onAzure, "", "active", true},
		{"firmware", "quiet", azureTag, "active", true},
		{"other argument", "ignition.platform.id=qemu", azureTag, "active", false},
		{"neither", "quiet", "", "inactive", false},
	}
	t.Parallel()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := boot(t, boottest.Config{Cmdline: tt.cmdline, AssetTag: tt.tag})
			g.want("systemctl is-active nm-azure-checkin.timer || :", tt.timer)
			if tt.azure {
				g.wantReports(1, 10*time.Second)
				g.wantHealthy()
				return
			}
			g.wantIdle()
			g.run("systemctl start nm-azure-checkin.service")
			g.wantIdle()
		})
	}
}

// TestTurnedOff does what the README says for an administrator who does not want it.
func TestTurnedOff(t *testing.T) {
	g := boot(t, boottest.Config{Cmdline: onAzure, Setup: `
		ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch
		systemctl mask nm-azure-checkin.timer nm-azure-checkin.service`})
	g.wantIdle()
}

// wantIdle sees that the program was there for several events of a lease, and has left no trace.
func (g guest) wantIdle() {
	g.t.Helper()
	g.run("nm-online -q && nmcli -w 20 connection up nic")
	g.settle()
	g.want("ls -d /run/nm-azure-dispatch 2>/dev/null || :", "")
	g.want("journalctl -b -q -o cat SYSLOG_IDENTIFIER=nm-azure-dispatch MESSAGE_ID=* 2>/dev/null || :", "")
	g.wantHealthy()
	requests, err := g.Requests()
	if err != nil || len(requests) > 0 {
		g.fatal(requests, err)
	}
}
