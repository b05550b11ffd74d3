package lab_test

import (
	"testing"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// Without the unit the hook fails in the way that the dispatcher logs, and the
// next event tries again.
func TestNoUnit(t *testing.T) {
	t.Parallel()
	onSomeSuites(t, func(t *testing.T, suite string) {
		c := quiet()
		c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
		l := startProduct(t, suite, c)
		l.Cloud.CloseWire()
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		up(t, l, "eth0")
		find(t, l, "given-up")
		find(t, l, "attempt-failed")
		ok(t, l.Cloud.PlayWire(lab.WireScript{}))
		event(t, l, "up", "eth0")
		find(t, l, "checked-in")
	})
}
