package main_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// A command line that cannot be read is not "not Azure": the hook reports it
// at each event, and the commands fail.
func TestPlatformUnknown(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		server := m.wireServer(wiretest.Script{})
		entries := m.journald()
		m.must(syscall.Mount("/proc/self/mem", "/proc/cmdline", "", syscall.MS_BIND, "")) // its first page cannot be read
		defer func() { m.must(syscall.Unmount("/proc/cmdline", syscall.MNT_DETACH)) }()
		const why = "azure: platform unknown: cannot read /proc/cmdline: input/output error"
		for _, action := range []string{"dhcp4-change", "up"} {
			if status, stderr := m.event("lo", action, leaseEnv); status != 0 || stderr != "" {
				t.Errorf("%s: status %d, stderr %q", action, status, stderr)
			}
		}
		if got := entries.taken(t); strings.Count(got, journal.PlatformUnknown.ID) != 2 || !strings.Contains(got, "NM_AZURE_ERROR="+why) {
			t.Errorf("want two entries:\n%s", got)
		}
		for _, command := range [][]string{{"check-in"}, {"report-failure", "--reason", "no disk"}} {
			if status, _, stderr := m.run(command); status != 1 || !strings.Contains(stderr, why) {
				t.Errorf("%s: status %d, stderr %q", command[0], status, stderr)
			}
		}
		if _, _, stderr := m.run([]string{"check-in"}); !strings.Contains(stderr, why+"; to check in anyway, use --server 168.63.129.16") {
			t.Errorf("check-in: stderr %q has no remedy", stderr)
		}
		if n := len(server.Requests()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
