package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// On a machine of systemd-networkd doctor speaks of that alone, and names the
// nameservers that a restart lost.
func TestDoctorNetworkd(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := startProduct(t, suite, networkdGuest(dhcpNetwork))
		startNetworkd(t, l)
		becomesReady(t, l)
		well := func(context.Context) error {
			r, status := examine(t, l)
			for _, s := range r.Steps {
				if text := s.Seen + s.Remedy; strings.Contains(text, "NetworkManager") || strings.Contains(text, "nmcli") {
					return fmt.Errorf("%s: %s -> %s", s.Name, s.Seen, s.Remedy)
				}
				if s.Verdict == doctor.Warn && s.Name != "route" {
					return fmt.Errorf("%s: %s", s.Name, s.Seen)
				}
			}
			if status != 0 {
				return fmt.Errorf("exit status %d: %s", status, notOK(r))
			}
			return nil
		}
		eventually(t, l, "nothing fails", well)

		silent := lab.AzureLease()
		silent.Silent = true
		l.Cloud.SetLease("", silent)
		ok(t, l.Guest.Restart(t.Context(), networkd))
		var r doctor.Report
		eventually(t, l, "doctor names the lost nameservers", func(context.Context) error {
			if r, _ = examine(t, l); failure(r) != "link-dns networkd-no-nameservers" {
				return fmt.Errorf("first failure is %q: %s", failure(r), notOK(r))
			}
			return nil
		})
		l.Cloud.SetLease("", lab.AzureLease())
		_, command, _ := strings.Cut(step(r, "link-dns").Remedy, ": sudo ")
		sh(command)(t, l)
		eventually(t, l, "nothing fails any more", well)
	})
}
