package boottest_test

import (
	"path/filepath"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// TestOtherPlatform boots where the kernel's command line says that this is not Azure, although the firmware says it is.
func TestOtherPlatform(t *testing.T) {
	g := boot(t, lab.Config{Cmdline: "ignition.platform.id=qemu", AssetTag: azureTag}, "", *rpm)
	g.want("systemctl is-active nm-azure-checkin.timer", "active")
	g.wantIdle()
	g.run("systemctl start nm-azure-checkin.service")
	g.wantIdle()
}

// TestTurnedOff does what the README says for an administrator who does not want it, and docs/images.md for an image that
// does not want Afterburn's check-in beside it.
func TestTurnedOff(t *testing.T) {
	preset, err := filepath.Abs("../examples/39-nm-azure-dispatch.preset")
	if err != nil {
		t.Fatal(err)
	}
	g := boot(t, lab.Config{Cmdline: onAzure}, `
		ln -s /dev/null /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch
		systemctl mask nm-azure-checkin.timer nm-azure-checkin.service
		cd /usr/lib/systemd
		printf '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n' >system/afterburn-checkin.service
		mkdir -p system-preset
		echo 'enable afterburn-checkin.service' >system-preset/40-coreos.preset
		cp /root/39-nm-azure-dispatch.preset system-preset
		systemctl preset afterburn-checkin.service`, *rpm, preset)
	g.wantIdle()
	g.want("systemctl is-enabled afterburn-checkin.service || :", "disabled")
}

// wantIdle sees that the program was there for several events of a lease, and has left no trace.
func (g guest) wantIdle() {
	g.t.Helper()
	g.run("nm-online -q && nmcli -w 20 connection up eth0")
	g.settle()
	g.want("ls -d /run/nm-azure-dispatch 2>/dev/null || :", "")
	g.want("journalctl -b -q -o cat SYSLOG_IDENTIFIER=nm-azure-dispatch MESSAGE_ID=* 2>/dev/null || :", "")
	g.wantHealthy()
	if requests := g.Cloud.Requests(); len(requests) > 0 {
		g.fatal(requests)
	}
}
