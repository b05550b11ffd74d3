package boottest_test

import (
	"flag"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

var deb = flag.String("deb", "", "the Debian package to test; none: skip its tests")

// networkd makes systemd-networkd the one that has the network.
const networkd = `
dpkg --purge --force-depends network-manager
printf '[Match]\nName=eth0\n[Network]\nDHCP=ipv4\n' >/etc/systemd/network/10-eth0.network
systemctl enable systemd-networkd.service systemd-resolved.service`

// noTimer leaves the check-in to what starts with the network.
const noTimer = "\nsystemctl mask nm-azure-checkin.timer"

// TestDeb installs the Debian package with the real dpkg, boots, and removes it. The timer is masked, so that the check-in is
// the dispatcher's, or that of the unit's link with systemd-networkd.
func TestDeb(t *testing.T) {
	t.Parallel()
	type machine struct{ suite, manager, setup, online string }
	tests := []machine{{"trixie", "NetworkManager", "", "nmcli -w 60 connection up eth0"}}
	for _, suite := range lab.Suites {
		tests = append(tests, machine{suite, "systemd-networkd", networkd, "networkctl reconfigure eth0"})
	}
	for _, tt := range tests {
		t.Run(tt.suite+" "+tt.manager, func(t *testing.T) {
			t.Parallel()
			if *deb == "" {
				t.Skip("needs a Debian package: make boot-test")
			}
			g := bootVM(t, lab.VMConfig{
				// The units look at the firmware's tag: an image of Debian's has no argument of Ignition's.
				Config: lab.Config{Suite: tt.suite, Cmdline: "quiet", AssetTag: azureTag, DNS: "none", ToResolved: "false"},
				Copies: map[string]string{*deb: "/root/package.deb"},
				Setup:  "dpkg --install /root/package.deb" + tt.setup + noTimer,
			})
			g.want("systemctl is-active "+tt.manager, "active")
			g.wantReports(1)
			g.wantDNS()
			g.wantHealthy()
			g.run("systemctl unmask nm-azure-checkin.timer && systemctl start nm-azure-checkin.timer")
			g.want("systemctl is-active nm-azure-checkin.timer", "active")
			g.want("dpkg --verify nm-azure-dispatch | grep -v /usr/share/ || :", "") // the tree is made without documents
			g.want("journalctl --list-catalog | grep -c nm-azure-dispatch", g.run("grep -c '^-- ' /usr/lib/systemd/catalog/nm-azure-dispatch.catalog"))
			g.run("journalctl --sync && systemctl start nm-azure-checkin.service && " + tt.online)
			g.wantReports(1)

			g.run("dpkg --purge nm-azure-dispatch")
			g.want("find / /run -xdev -path /root -prune -o -name '*nm-azure-[dc]*' -print", "")
			g.want("systemctl list-units --all --plain --no-legend 'nm-azure-[dc]*'", "")
			g.run(tt.online)
			g.wantReports(1)
			g.wantHealthy()
		})
	}
}
