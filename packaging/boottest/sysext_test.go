package boottest_test

import (
	"flag"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

var sysext = flag.String("sysext", "", "the system extension to test; none: skip its test")

// TestSysext merges the system extension into a machine with systemd-networkd that has booted without it, and does what
// Flatcar does where it merges extensions after systemd has begun to boot. The next boot does the same.
func TestSysext(t *testing.T) {
	t.Parallel()
	if *sysext == "" {
		t.Skip("needs a system extension: make boot-test")
	}
	g := bootVM(t, lab.VMConfig{
		Config: lab.Config{Suite: "trixie", Cmdline: onAzure, AssetTag: azureTag, Files: map[string]string{
			"/etc/systemd/system/systemd-sysext.service.d/reload.conf": "[Service]\nExecStartPost=systemctl daemon-reload\n" +
				"ExecStartPost=systemctl restart --no-block timers.target multi-user.target\n",
		}},
		Copies: map[string]string{*sysext: "/root/nm-azure-dispatch.raw"},
		Setup:  networkd + "\nsystemctl enable systemd-sysext.service",
	})
	g.run("mkdir -p /etc/extensions && cp /root/nm-azure-dispatch.raw /etc/extensions/ && systemctl restart systemd-sysext.service")
	g.want("readlink /usr/bin/nm-azure-dispatch", "../libexec/nm-azure-dispatch")
	g.wantReports(1)
	g.want("systemctl is-active nm-azure-checkin.timer", "active")
	g.wantHealthy()

	g.ok(g.Reboot(t.Context()))
	g.wantReports(2)
	g.wantHealthy()
	g.run("rm /etc/extensions/nm-azure-dispatch.raw && systemctl stop nm-azure-checkin.timer && systemctl restart systemd-sysext.service")
	g.want("ls /usr/libexec/nm-azure-dispatch 2>/dev/null || :", "")
}
