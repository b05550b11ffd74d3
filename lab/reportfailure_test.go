package lab_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

const initrdExamples = "../packaging/examples/initrd/"

// The unit for an initrd, under the real systemd: Azure is told, and no Ready
// follows in the same boot.
func TestReportFailureUnit(t *testing.T) {
	onEverySuite(t, func(t *testing.T, suite string) {
		unit, err := os.ReadFile(initrdExamples + "nm-azure-report-failure.service")
		ok(t, err)
		c := quiet()
		c.Systemd = true
		c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
		c.Files = map[string]string{"/usr/lib/systemd/system/nm-azure-report-failure.service": string(unit)}
		l := startProduct(t, suite, c)
		ok(t, l.Guest.WriteFile("/etc/initrd-release", "", 0o644)) // not before: systemd would take the guest for an initrd
		run(t, l, "sh", "-c", "ip link set eth0 up && ip addr add 10.77.0.60/24 dev eth0 && ip route add default via 10.77.0.1")
		run(t, l, "systemctl", "start", "nm-azure-report-failure.service")
		eventually(t, l, "the failure is recorded", prints(l, `"state": "failed"`, "cat", "/run/nm-azure-dispatch/check-in.json"))
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		up(t, l, "eth0")
		log, err := l.Cloud.Requests(t.Context())
		ok(t, err)
		if len(log) != 2 || !strings.Contains(log[1].Body, "<SubStatus>ProvisioningFailed</SubStatus>") || !strings.Contains(log[1].Body, "serial console") {
			t.Errorf("requests %+v", log)
		}
		find(t, l, "failure-reported")
	})
}

// What docs/operations.md shows are the example files, less their comments.
func TestReportFailureExamples(t *testing.T) {
	docs, err := os.ReadFile("../docs/operations.md")
	ok(t, err)
	for _, name := range []string{"nm-azure-report-failure.service", "50-nm-azure-report-failure.conf"} {
		b, err := os.ReadFile(initrdExamples + name)
		ok(t, err)
		text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(b), "")
		if !strings.Contains(string(docs), "\n"+text+"```") {
			t.Errorf("docs/operations.md does not have %s:\n%s", name, text)
		}
	}
}
