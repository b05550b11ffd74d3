package lab_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// Whatever hangs, doctor and status end in time, and doctor names the first one
// that does.
func TestDoctorWhatHangs(t *testing.T) {
	stop := func(daemons ...lab.Daemon) func(*testing.T, *lab.Lab) {
		return func(t *testing.T, l *lab.Lab) {
			for _, d := range daemons {
				ok(t, l.Guest.Signal(t.Context(), d, syscall.SIGSTOP))
			}
		}
	}
	cases := []struct {
		name string
		hang func(*testing.T, *lab.Lab)
		want string
	}{
		{"NetworkManager", stop(lab.NetworkManager), "networkmanager"},
		{"resolved", stop(lab.Resolved), "resolved"},
		{"the bus", stop(lab.DBus), "networkmanager"},
		{"everything", func(t *testing.T, l *lab.Lab) {
			ok(t, l.Cloud.DropWire(t.Context(), true))
			dnsFault(lab.DNSSilent)(t, l)
			stop(lab.Journald, lab.NetworkManager, lab.Resolved)(t, l)
		}, "networkmanager"},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := quiet()
			cfg.Systemd = true
			l := startProduct(t, lab.Suites[i%len(lab.Suites)], cfg)
			settled()(t, l)
			c.hang(t, l)
			if r, status := examine(t, l); r.FirstFailure == nil || *r.FirstFailure != c.want || status != 1 {
				t.Errorf("exit status %d, want 1, and first failure %s:\n%s", status, c.want, notOK(r))
			}
			start := time.Now()
			run(t, l, lab.ProductBinary, "status") // this boot is ready
			if took := time.Since(start); took > 6*time.Second {
				t.Errorf("status took %v", took)
			}
		})
	}
}
