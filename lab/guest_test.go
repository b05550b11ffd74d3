package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab"
)

func TestSystemd(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite, Systemd: true})
		if got := run(t, l, "systemctl", "is-system-running"); got != "running" {
			t.Errorf("systemd is %s", got)
		}
		connected(t, l, "eth0")
		eventually(t, l, "the journal has NetworkManager's state",
			prints(l, "Activation: successful", "journalctl", "-u", "NetworkManager", "--no-pager"))
		ok(t, l.Guest.Signal(t.Context(), lab.Resolved, unix.SIGSTOP))
		ok(t, l.Guest.Signal(t.Context(), lab.Resolved, unix.SIGCONT))
		ok(t, l.Guest.Restart(t.Context(), lab.NetworkManager))
		connected(t, l, "eth0")
	})
}

func TestDaemons(t *testing.T) {
	t.Parallel()
	l := start(t, lab.Config{})
	connected(t, l, "eth0")
	for _, d := range []lab.Daemon{lab.Resolved, lab.NetworkManager} {
		ok(t, l.Guest.Signal(t.Context(), d, unix.SIGSTOP))
		ok(t, l.Guest.Signal(t.Context(), d, unix.SIGCONT))
		ok(t, l.Guest.Restart(t.Context(), d))
		ok(t, l.Guest.Kill(t.Context(), d))
		ok(t, l.Guest.Start(t.Context(), d))
	}
	connected(t, l, "eth0")
}

// The errors with which the bus answers a call to resolved.
func TestResolvedStates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state   lab.State
		systemd bool
		want    string
	}{
		{lab.Stopped, false, "Launch helper exited"},
		{lab.Absent, false, "not provided by any .service files"},
		{lab.Stopped, true, ""},
		{lab.Disabled, true, "Unit dbus-org.freedesktop.resolve1.service not found"},
		{lab.Masked, true, "File exists"},
		{lab.Absent, true, "not provided by any .service files"},
	}
	for _, tt := range tests {
		name := string(tt.state)
		if tt.systemd {
			name += " with systemd"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, lab.Config{Systemd: tt.systemd, Daemons: map[lab.Daemon]lab.State{lab.Resolved: tt.state}})
			_, err := l.Guest.Run(t.Context(), "busctl", "call", "org.freedesktop.resolve1", "/org/freedesktop/resolve1",
				"org.freedesktop.resolve1.Manager", "FlushCaches")
			if tt.want == "" {
				ok(t, err)
			} else if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	l := start(t, lab.Config{
		Cmdline: "ro ignition.platform.id=qemu", AssetTag: "7783-7084-3265-9085-8269-3286-77",
		Daemons: map[lab.Daemon]lab.State{lab.NetworkManager: lab.Stopped},
	})
	ok(t, l.Guest.SetBootID("00000000-0000-4000-8000-00000000000f"))
	for file, want := range map[string]string{
		"/proc/cmdline":                       "ro ignition.platform.id=qemu",
		"/proc/sys/kernel/random/boot_id":     "00000000-0000-4000-8000-00000000000f",
		"/sys/class/dmi/id/chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77",
	} {
		if got := run(t, l, "cat", file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if _, err := l.Guest.Run(t.Context(), "sh", "-c", "echo 1 >/proc/sys/kernel/panic"); err == nil {
		t.Error("the guest can change a setting of the host's kernel")
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	onEverySuite(t, func(t *testing.T, suite string) {
		l := start(t, lab.Config{Suite: suite, Systemd: true, Product: standIn(t)})
		eventually(t, l, "the gate was called", prints(l, "eth0 up", "cat", "/run/stand-in"))
		eventually(t, l, "the timer's unit was started on the guest's machine",
			prints(l, "ignition.platform.id=azure b0070001", "cat", "/run/stand-in"))
	})
}

// standIn is a product that notes with what it was called, and on what machine its unit runs.
func standIn(t *testing.T) *lab.Product {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		ok(t, os.WriteFile(name, []byte(text), 0o755))
		return name
	}
	return &lab.Product{
		Binary: write("program", `#!/bin/sh
[ "$1" != check-in ] || set -- $(cat /proc/cmdline /proc/sys/kernel/random/boot_id)
echo "$@" >>/run/stand-in
`),
		Gate: write("gate", "#!/bin/sh\nexec "+lab.ProductBinary+" \"$@\"\n"),
		Units: []string{
			write("stand-in.service", "[Service]\nExecStart="+lab.ProductBinary+" check-in\nProtectProc=invisible\nProtectKernelTunables=yes\n"),
			write("stand-in.timer", "[Timer]\nOnActiveSec=0\n"),
		},
	}
}
