package lab_test

import (
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// The failed units under the real systemd, without NetworkManager and the bus: Azure receives what the
// unit logged, and no Ready follows in the same boot.
func TestReportFailedUnits(t *testing.T) {
	onEverySuite(t, func(t *testing.T, suite string) {
		c := quiet()
		c.Systemd = true
		c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
		c.Files = map[string]string{
			"/etc/systemd/system/failing.service": "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo fetched http://h/c.ign?sig=s3cret; echo disk: not found >&2; exit 3'\n",
			"/etc/systemd/system/ended.service":   "[Service]\nType=oneshot\nExecStart=/bin/sleep 1d\n",
		}
		l := startProduct(t, suite, c)
		run(t, l, "sh", "-c", "ip link set eth0 up && ip addr add 10.77.0.60/24 dev eth0 && ip route add default via 10.77.0.1")
		run(t, l, "sh", "-c", "systemctl --no-block start failing ended; until systemctl is-failed failing; do sleep 0.1; done; systemctl stop ended dbus.socket dbus")
		run(t, l, lab.ProductBinary, "report-failure", "--failed-units")
		run(t, l, "systemctl", "start", "dbus")
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		up(t, l, "eth0")
		log := l.Cloud.Requests()
		const want = "<Description>failed: failing.service: disk: not found / fetched http://h/c.ign?[...]</Description>"
		if len(log) != 2 || !strings.Contains(log[1].Body, "<SubStatus>ProvisioningFailed</SubStatus>") || !strings.Contains(log[1].Body, want) {
			t.Errorf("want %s in the second of two requests: %+v", want, log)
		}
		find(t, l, "failure-reported")
	})
}
