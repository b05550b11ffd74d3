package boottest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/boottest"
)

// TestResolvedNotThere checks in all the same where systemd-resolved is not in use.
func TestResolvedNotThere(t *testing.T) {
	tests := []struct{ name, setup string }{
		{"disabled", "systemctl disable systemd-resolved"},
		{"masked", "systemctl mask systemd-resolved"},
		{"absent", "dpkg --purge --force-depends systemd-resolved libnss-resolve"},
	}
	t.Parallel()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := boot(t, boottest.Config{Cmdline: onAzure, Setup: tt.setup})
			g.wantReports(1, 10*time.Second)
			g.wantHealthy()
			if g.slow() {
				return // NetworkManager may not have answered in time
			}
			g.want("journalctl -b -q -o cat -t nm-azure-dispatch MESSAGE_ID=7faf76eaf3554860ae5b8a0f30511417 | wc -l", "1")
		})
	}
}

// TestTimer checks in although no event reaches the hook.
func TestTimer(t *testing.T) {
	tests := []struct{ name, setup, source string }{
		{"dispatcher masked", "systemctl mask NetworkManager-dispatcher", "option-245"},
		{
			"static address", `sed -i 's,^method=auto,method=manual\naddress1=10.0.0.4/24\,10.0.0.1,' ` +
				`/etc/NetworkManager/system-connections/nic.nmconnection`, "constant",
		},
	}
	t.Parallel()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := boot(t, boottest.Config{Cmdline: onAzure, Setup: tt.setup})
			g.wantReports(1, 80*time.Second)
			g.wantHealthy()
			if g.slow() {
				return // there was no lease yet
			}
			g.want(`grep -o '"source": *"[^"]*"' /run/nm-azure-dispatch/check-in.json | cut -d'"' -f4`, tt.source)
			g.want("systemctl show --value -p Result nm-azure-checkin.service", "success")
			started := g.run("systemctl show --value -p ExecMainStartTimestampMonotonic nm-azure-checkin.service")
			booted := "0" // by the clock of a kernel of its own
			if !*qemu {
				booted = g.run("systemctl show --value -p UserspaceTimestampMonotonic")
			}
			g.want("test $(("+started+" - "+booted+")) -ge 60000000 && echo late enough", "late enough")
		})
	}
}

// TestWireServerAway boots without a WireServer, which comes back half a minute later.
func TestWireServerAway(t *testing.T) {
	g := boot(t, boottest.Config{Cmdline: onAzure})
	g.wantReports(1, 10*time.Second)
	g.reboot()
	g.wantReports(2, 10*time.Second)
	usual := g.userspace()

	g.wireServer(false)
	g.reboot()
	away := g.userspace()
	limit := usual + 2500*time.Millisecond // half of what the hook may take
	for tries := 1; away > limit && tries < 3 && !*qemu; tries++ {
		g.reboot() // a busy host makes it longer, too, but not each time
		away = min(away, g.userspace())
	}
	t.Logf("boot with the WireServer %v, without %v", usual, away)
	if away > limit && !*qemu {
		g.fatal("the boot took ", away, " without the WireServer, want at most ", limit)
	}
	booted := time.Now()
	g.waitActive("nm-azure-checkin.service")
	g.wantHealthy()

	time.Sleep(time.Until(booted.Add(30 * time.Second)))
	g.wireServer(true)
	back := time.Now()
	g.wantReports(3, 10*time.Second)
	reports, err := g.Reports()
	if err != nil {
		g.fatal(err)
	}
	delay := time.Unix(0, reports[2].UnixNano).Sub(back)
	t.Logf("told %.1f s after the WireServer was back", delay.Seconds())
	if delay > 4*time.Second && !*qemu {
		g.fatal("told only ", delay, " after the WireServer was back")
	}
	g.want("systemctl show --value -p Result -p ActiveState nm-azure-checkin.service", "success\ninactive")
	g.wantHealthy()
	if g.slow() {
		return // there was nothing to hand over: the timer's unit had the lock
	}
	g.want("journalctl -b -q -o cat -t nm-azure-dispatch MESSAGE_ID=d99042b6c809471a99e2e9c4b3171cd8 | wc -l", "1")
}

// TestKilled kills the unit's process, which holds the lock, in the middle of its attempts: systemd starts it again.
func TestKilled(t *testing.T) {
	g := boot(t, boottest.Config{Cmdline: onAzure})
	g.wantReports(1, 10*time.Second)
	g.wireServer(false)
	g.reboot()
	g.waitActive("nm-azure-checkin.service")
	g.run("systemctl kill --signal=KILL nm-azure-checkin.service")
	g.wireServer(true)
	g.wantReports(2, 45*time.Second)
	g.wantHealthy()
}

// TestRunFull lets the unit start and check in when nothing can be written to /run.
func TestRunFull(t *testing.T) {
	g := boot(t, boottest.Config{Cmdline: onAzure})
	g.wantReports(1, 10*time.Second)
	g.run("rm /run/nm-azure-dispatch/check-in.json; mount -o remount,size=16m /run; dd if=/dev/zero of=/run/full bs=64k 2>/dev/null; " +
		"dd if=/dev/zero of=/run/fuller bs=512 2>/dev/null; systemctl start nm-azure-checkin.service")
	g.wantReports(2, 10*time.Second)
	g.run("rm /run/full*")
	g.wantHealthy()
	if !strings.Contains(g.run("journalctl -b -o cat -t nm-azure-dispatch"), "cannot keep a record") {
		g.fatal("the journal does not say that there is no record")
	}
}
