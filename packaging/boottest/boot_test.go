package boottest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// TestBoot is the life of a machine: first boot, NetworkManager restarted, a boot without a WireServer, an upgrade while the
// check-in is under way, one more boot, removal. The first boot is on each release, as are those of TestDeb, where the unit
// checks in. What follows it takes two minutes an emulated machine, and is rpm's doing: on the oldest release.
func TestBoot(t *testing.T) {
	t.Parallel()
	for _, suite := range lab.Suites {
		t.Run(suite, func(t *testing.T) {
			c := lab.Config{Suite: suite, Cmdline: onAzure, AssetTag: azureTag}
			if suite == "bookworm" {
				c.Cmdline = "quiet" // the firmware says enough
			}
			g := boot(t, c, "", *older, *rpm)
			g.first()
			if suite == lab.Suites[0] {
				g.upgrade()
				g.remove()
			}
		})
	}
}

func (g guest) first() {
	g.wantReports(1)
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
	catalog := g.run("cat /usr/lib/systemd/catalog/nm-azure-dispatch.catalog")
	for _, kind := range []journal.Kind{journal.CheckedIn, journal.NameserversPushed} {
		_, entry, _ := strings.Cut(catalog, "-- "+kind.ID+"\n")
		subject, _, _ := strings.Cut(entry, "\n")
		if subject == "" || !strings.Contains(text, subject) || strings.Contains(text, "@NM_AZURE_") {
			g.fatal("no explanation ", subject, ", or one with a field that was not replaced:\n", text)
		}
	}

	g.run("systemctl restart NetworkManager && nm-online -q")
	g.run("systemctl start nm-azure-checkin.service")
	g.wantReports(1)
	g.wantDNS()
}

// upgrade boots again, without a WireServer, and upgrades from the older version while that is checking in.
func (g guest) upgrade() {
	ctx := g.t.Context()
	g.Cloud.CloseWire()
	g.ok(g.Reboot(ctx))
	const unit = "nm-azure-checkin.service"
	g.run("for i in $(seq 900); do systemctl -q is-active " + unit + " && exit; sleep 0.1; done; exit 1")
	pid := g.run("systemctl show --value -p MainPID " + unit)
	before := g.run("nm-azure-dispatch version | head -n 1")
	g.run("rpm -U --nodeps /root/" + filepath.Base(*rpm))
	if after := g.run("nm-azure-dispatch version | head -n 1"); after == before {
		g.fatal("still ", before)
	}
	g.want("systemctl show --value -p MainPID "+unit, pid)
	g.ok(g.Cloud.PlayWire(lab.WireScript{}))
	g.wantReports(2)
	g.want("systemctl show --value -p Result "+unit, "success")
	g.wantHealthy()
	g.want("rpm -V --nodeps nm-azure-dispatch", "")
	g.want("systemctl is-active nm-azure-checkin.timer", "active")
}

func (g guest) remove() {
	g.ok(g.Reboot(g.t.Context()))
	g.wantReports(3)
	g.wantDNS()
	g.wantHealthy()
	g.run("rpm -e nm-azure-dispatch")
	g.want("find / /run -xdev -path /root -prune -o -name '*nm-azure-[dc]*' -print", "")
	g.want("systemctl list-units --all --plain --no-legend 'nm-azure-[dc]*'", "")
	g.run("nmcli -w 20 connection up eth0")
	g.wantReports(3)
	g.wantHealthy()
}
