package boottest_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/boottest"
)

// TestBoot is the life of a machine: first boot, NetworkManager started anew, second boot, removal.
func TestBoot(t *testing.T) {
	g := boot(t, boottest.Config{Cmdline: onAzure, AssetTag: azureTag})
	g.wantReports(1, 10*time.Second)
	g.wantDNS()
	g.wantHealthy()
	g.want("nm-azure-dispatch check-in | cut -d: -f1", "already checked in")
	g.want("stat -c '%a %U' /run/nm-azure-dispatch /run/nm-azure-dispatch/*.json /run/nm-azure-dispatch/*.lock",
		"755 root\n644 root\n600 root")
	g.want("systemctl is-active nm-azure-checkin.timer", "active")
	g.want("rpm -V --nodeps nm-azure-dispatch", "")

	// The file trigger of Fedora's systemd does this when a package is installed.
	g.run("journalctl --update-catalog")
	text := g.run("journalctl -b -x -t nm-azure-dispatch")
	for _, want := range []string{
		"Subject: Azure knows that this virtual machine is ready",
		"The WireServer at 168.63.129.16 took the report at attempt ",
		"Subject: systemd-resolved was given the nameservers of the DHCP lease",
	} {
		if !strings.Contains(text, want) {
			g.fatal("no ", want, " in:\n", text)
		}
	}

	g.run("systemctl restart NetworkManager && nm-online -q")
	g.wantReports(1, 0)
	g.run("systemctl start nm-azure-checkin.service")
	g.wantReports(1, 0)
	g.wantDNS()

	g.reboot()
	g.wantReports(2, 10*time.Second)
	g.wantDNS()
	g.wantHealthy()

	g.run("rpm -e nm-azure-dispatch")
	g.want("find / /run -xdev -path /root -prune -o -path /boottest -prune -o -path '/etc/*.service.d' -o -name '*nm-azure*' -print", "")
	g.want("systemctl list-units --all --plain --no-legend 'nm-azure*'", "")
	g.run("nmcli -w 20 connection up nic")
	g.wantReports(2, 0)
	g.wantHealthy()
}

// TestUpgrade upgrades from an older version while that is checking in.
func TestUpgrade(t *testing.T) {
	g := boot(t, boottest.Config{Cmdline: onAzure, RPMs: []string{*older}, Files: []string{*rpm}})
	g.wantReports(1, 10*time.Second)
	g.wireServer(false)
	g.reboot()
	g.waitActive("nm-azure-checkin.service")
	pid := g.run("systemctl show --value -p MainPID nm-azure-checkin.service")

	before := g.run("nm-azure-dispatch version | head -n 1")
	g.run("rpm -U --nodeps /root/" + filepath.Base(*rpm))
	if after := g.run("nm-azure-dispatch version | head -n 1"); after == before {
		g.fatal("still ", before)
	}
	g.want("systemctl show --value -p MainPID nm-azure-checkin.service", pid)
	g.wireServer(true)
	g.wantReports(2, 10*time.Second)
	g.wantHealthy()
	g.want("rpm -V --nodeps nm-azure-dispatch", "")
	g.want("systemctl is-active nm-azure-checkin.timer", "active")
	g.reboot()
	g.wantReports(3, 10*time.Second)
	g.wantHealthy()
}

// waitActive waits for a unit.
func (g guest) waitActive(unit string) {
	g.t.Helper()
	g.run("for i in $(seq 150); do systemctl -q is-active " + unit + " && exit; sleep 0.1; done; exit 1")
}
