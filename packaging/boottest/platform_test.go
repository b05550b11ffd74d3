package boottest_test

import (
	"path/filepath"
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

// TestTurnedOff does what the README says for an administrator who does not want it, and what it says for an image that
// does not want Afterburn's check-in beside it.
func TestTurnedOff(t *testing.T) {
	preset, err := filepath.Abs("../examples/39-nm-azure-dispatch.preset")
	if err != nil {
		t.Fatal(err)
	}
	g := boot(t, boottest.Config{Cmdline: onAzure, Files: []string{preset}, Setup: `
		ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch
		systemctl mask nm-azure-checkin.timer nm-azure-checkin.service
		cd /usr/lib/systemd
		printf '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n' >system/afterburn-checkin.service
		mkdir -p system-preset
		echo 'enable afterburn-checkin.service' >system-preset/40-coreos.preset
		cp /root/39-nm-azure-dispatch.preset system-preset
		systemctl preset afterburn-checkin.service`})
	g.wantIdle()
	g.want("systemctl is-enabled afterburn-checkin.service || :", "disabled")
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
