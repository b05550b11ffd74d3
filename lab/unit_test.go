package lab_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

// The unit and its timer under the real systemd: whatever keeps the hook from checking in, there is one Ready in the end.
// TestHandOver has the hand-over from the hook.

const (
	unit        = "nm-azure-checkin.service"
	unitDropIn  = "/etc/systemd/system/" + unit + ".d/soon.conf"
	timerDropIn = "/etc/systemd/system/nm-azure-checkin.timer.d/soon.conf"
)

// withUnits is a guest with systemd. The half minute between restarts is a second, unless there is the time for it.
func withUnits(c lab.Config) lab.Config {
	c.Systemd = true
	c.Files = map[string]string{}
	if !everything() {
		c.Files[unitDropIn] = "[Service]\nRestartSec=1\n"
	}
	return c
}

// withTimer is such a guest whose timer's minute is five seconds. On a busy machine these have passed before the test goes
// on, so it is only for tests of the timer.
func withTimer(c lab.Config) lab.Config {
	c = withUnits(c)
	if !everything() {
		c.Files[timerDropIn] = "[Timer]\nOnBootSec=\nOnBootSec=5s\n"
	}
	return c
}

// away is how long the WireServer is away.
func away() time.Duration {
	if everything() {
		return 2 * time.Minute
	}
	return 12 * time.Second
}

// patience is for what comes with the timer, or a restart.
const patience = 2 * time.Minute

// oneReady waits for the check-in, and for a moment in which a second one could come.
func oneReady(t *testing.T, l *lab.Lab, boot string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	err := errors.New("not looked yet")
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
		err = isReady(l, boot)(t.Context())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, l.Dump(t.Context()))
	}
	run(t, l, "systemctl", "start", unit) // finds it done
	time.Sleep(500 * time.Millisecond)
	if got := requests(t, l); readys(got) != 1 {
		t.Errorf("requests %v, want one Ready", got)
	}
	if state, _ := l.Guest.Run(t.Context(), "systemctl", "is-failed", unit); state == "failed" {
		t.Error("the unit has failed")
	}
	noLeftovers(t, l)
}

// labBoot is the boot ID that a lab begins with.
func labBoot(t *testing.T, l *lab.Lab) string {
	t.Helper()
	return run(t, l, "cat", "/proc/sys/kernel/random/boot_id")
}

// No event reaches the hook: the timer is the backstop.
func TestTimer(t *testing.T) {
	t.Parallel()
	static := quiet()
	profile("ipv4.method=manual", "ipv4.address1=10.77.0.9/24,10.77.0.1", "ipv4.dns=10.77.0.1")(&static)
	for name, c := range map[string]lab.Config{
		"dispatcher masked": with(quiet(), func(c *lab.Config) { c.Daemons = map[lab.Daemon]lab.State{lab.Dispatcher: lab.Masked} }),
		"static profile":    static,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onSomeSuites(t, func(t *testing.T, suite string) {
				l := startProduct(t, suite, withTimer(c))
				connected(t, l, "eth0")
				oneReady(t, l, labBoot(t, l))
				rec := checkInRecord(t, l)
				if want := map[bool]string{true: "option-245", false: "constant"}[name == "dispatcher masked"]; rec.Source != want {
					t.Errorf("checked in by %s, want %s", rec.Source, want)
				}
			})
		})
	}
}

// The WireServer is away when the machine boots, for longer than the hook may take.
func TestWireServerAway(t *testing.T) {
	t.Parallel()
	onSomeSuites(t, func(t *testing.T, suite string) {
		c := withUnits(quiet())
		c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
		l := startProduct(t, suite, c)
		l.Cloud.CloseWire()
		ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
		up(t, l, "eth0")
		logged(t, l, "handed-over")
		time.Sleep(away())
		if got := checkInRecord(t, l); got.State != "trying" {
			t.Errorf("the record says %s", got.State)
		}
		ok(t, l.Cloud.PlayWire(lab.WireScript{}))
		back := time.Now()
		oneReady(t, l, labBoot(t, l))
		if took := time.Since(back); took > 10*time.Second { // a retry each second, a busy machine, and oneReady's own moments
			t.Errorf("Ready came %v after the WireServer", took)
		}
	})
}

// The process that holds the lock of the check-in is killed: the unit, which systemd starts again, or the hook, whose place the
// unit takes that has waited for it.
func TestHolderKilled(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(*testing.T, *lab.Lab){
		"the unit": func(t *testing.T, l *lab.Lab) {
			up(t, l, "eth0")
			logged(t, l, "handed-over")
			eventually(t, l, "the unit tries", func(context.Context) error { return trying(t, l, 8) })
			run(t, l, "systemctl", "kill", "-s", "KILL", unit)
		},
		"the hook": func(t *testing.T, l *lab.Lab) {
			eventually(t, l, "the hook tries", func(context.Context) error { return trying(t, l, 2) })
			run(t, l, "systemctl", "start", unit)
			run(t, l, "pkill", "-KILL", "-f", "^"+lab.ProductBinary+" eth0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onSomeSuites(t, func(t *testing.T, suite string) {
				c := withUnits(quiet())
				c.Daemons = map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped}
				l := startProduct(t, suite, c)
				l.Cloud.CloseWire()
				ok(t, l.Guest.Start(t.Context(), lab.NetworkManager))
				first(t, l)
				ok(t, l.Cloud.PlayWire(lab.WireScript{}))
				oneReady(t, l, labBoot(t, l))
			})
		})
	}
}

// trying reports whether so many attempts are recorded.
func trying(t *testing.T, l *lab.Lab, attempts int) error {
	t.Helper()
	if !l.Guest.Exists(stateDir + "/check-in.json") {
		return errors.New("no record")
	}
	if rec := checkInRecord(t, l); rec.State != "trying" || rec.Attempts < attempts {
		return fmt.Errorf("%s, %d attempts", rec.State, rec.Attempts)
	}
	return nil
}
