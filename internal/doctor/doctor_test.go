package doctor_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/doctor/live"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// Each case breaks a healthy machine in one way, and has all that is then said
// of steps that are not ok.
func TestSteps(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, w *world)
		want   []string
	}{
		{
			"all is well", func(_ *testing.T, _ *world) {
			},
			nil,
		},
		{
			"all is well as another user", func(_ *testing.T, w *world) {
				w.user = 1000
			},
			nil,
		},
		{
			"not Azure", func(_ *testing.T, w *world) {
				w.files["proc/cmdline"] = file("ignition.platform.id=qemu")
			},
			[]string{
				"platform fail: this machine is not Azure: ignition.platform.id=qemu -> nothing is to be done elsewhere; on Azure one of these says so, the kernel command line with ignition.platform.id=azure: cat /proc/cmdline /sys/class/dmi/id/chassis_asset_tag",
				"networkmanager skipped: this machine is not Azure",
				"dispatcher skipped: this machine is not Azure",
				"hook skipped: this machine is not Azure",
				"timer skipped: this machine is not Azure",
				"device skipped: this machine is not Azure",
				"lease skipped: this machine is not Azure",
				"option-245 skipped: this machine is not Azure",
				"route skipped: this machine is not Azure",
				"tcp-80 skipped: this machine is not Azure",
				"goal-state skipped: this machine is not Azure",
				"record skipped: this machine is not Azure",
				"agents skipped: this machine is not Azure",
				"resolved skipped: this machine is not Azure",
				"resolv-conf skipped: this machine is not Azure",
				"nm-dns skipped: this machine is not Azure",
				"link-dns skipped: this machine is not Azure",
				"nameservers skipped: this machine is not Azure",
				"lookup skipped: this machine is not Azure",
			},
		},
		{
			"NetworkManager is not running", func(_ *testing.T, w *world) {
				w.nmErr = live.ErrNotRunning
			},
			[]string{
				"networkmanager fail: NetworkManager is not running -> start it: sudo systemctl enable --now NetworkManager.service",
				"device skipped: not looked at: networkmanager failed",
				"lease skipped: not looked at: device was skipped",
				"option-245 skipped: not looked at: lease was skipped",
				"nm-dns skipped: not looked at: networkmanager failed",
				"link-dns skipped: not looked at: networkmanager failed",
			},
		},
		{
			"NetworkManager hangs", func(_ *testing.T, w *world) {
				w.hang["networkmanager"] = true
			},
			[]string{
				"networkmanager fail: networkmanager: no answer within 2.1s -> restart it; if that does not help, restart the machine: sudo systemctl restart NetworkManager.service",
				"device skipped: not looked at: networkmanager failed",
				"lease skipped: not looked at: device was skipped",
				"option-245 skipped: not looked at: lease was skipped",
				"nm-dns skipped: not looked at: networkmanager failed",
				"link-dns skipped: not looked at: networkmanager failed",
			},
		},
		{
			"NetworkManager is silent on renewals", func(_ *testing.T, w *world) {
				w.nm.Version = "1.42.4-1.el9"
			},
			[]string{
				"networkmanager warn: 1.42.4-1.el9 is running; versions 1.36.0 to 1.42.4 announce no renewal of a lease, so changed DNS servers of the virtual network come with the next activation only -> after such a change: sudo nmcli device reapply eth0",
			},
		},
		{
			"dispatcher disabled", func(_ *testing.T, w *world) {
				w.units["NetworkManager-dispatcher.service"] = live.Unit{File: "disabled"}
			},
			[]string{
				"dispatcher fail: NetworkManager-dispatcher.service is disabled: no event reaches the hook -> enable it, then repeat the event: sudo systemctl enable NetworkManager-dispatcher.service && sudo nmcli device reapply eth0",
			},
		},
		{
			"dispatcher disabled, NetworkManager without the event reapply", func(_ *testing.T, w *world) {
				w.nm.Version = "1.34.0"
				w.units["NetworkManager-dispatcher.service"] = live.Unit{File: "disabled"}
			},
			[]string{
				"dispatcher fail: NetworkManager-dispatcher.service is disabled: no event reaches the hook -> enable it, then repeat the event: sudo systemctl enable NetworkManager-dispatcher.service && sudo nmcli connection up 'Wired connection 1'",
			},
		},
		{
			"dispatcher masked", func(_ *testing.T, w *world) {
				w.units["NetworkManager-dispatcher.service"] = live.Unit{File: "masked"}
			},
			[]string{
				"dispatcher fail: NetworkManager-dispatcher.service is masked: no event reaches the hook -> unmask it, then repeat the event: sudo systemctl unmask NetworkManager-dispatcher.service && sudo systemctl enable NetworkManager-dispatcher.service && sudo nmcli device reapply eth0",
			},
		},
		{
			"dispatcher absent", func(_ *testing.T, w *world) {
				delete(w.units, "NetworkManager-dispatcher.service")
			},
			[]string{
				"dispatcher fail: NetworkManager-dispatcher.service is not installed -> install NetworkManager with its dispatcher",
			},
		},
		{
			"systemd hangs, the files say that the dispatcher is masked", func(_ *testing.T, w *world) {
				w.hang["systemd"] = true
				w.files["etc/systemd/system/NetworkManager-dispatcher.service"] = symlink("/dev/null")
				w.files["usr/lib/systemd/system/nm-azure-checkin.timer"] = file("[Timer]")
				w.files["usr/lib/systemd/system/nm-azure-checkin.service"] = file("[Service]")
			},
			[]string{
				"dispatcher fail: NetworkManager-dispatcher.service is masked: no event reaches the hook -> unmask it, then repeat the event: sudo systemctl unmask NetworkManager-dispatcher.service && sudo systemctl enable NetworkManager-dispatcher.service && sudo nmcli device reapply eth0",
			},
		},
		{
			"no systemd", func(_ *testing.T, w *world) {
				delete(w.files, "run/systemd/system/x")
				w.files["usr/share/dbus-1/system-services/org.freedesktop.nm_dispatcher.service"] = file("x")
			},
			[]string{
				"timer skipped: systemd is not running, so nothing goes on where the hook has to stop after 5 s",
			},
		},
		{
			"no systemd, no dispatcher", func(_ *testing.T, w *world) {
				delete(w.files, "run/systemd/system/x")
			},
			[]string{
				"dispatcher fail: nm-dispatcher is not installed -> install NetworkManager with its dispatcher",
				"timer skipped: systemd is not running, so nothing goes on where the hook has to stop after 5 s",
			},
		},
		{
			"hook absent", func(_ *testing.T, w *world) {
				delete(w.files, hook)
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch is not there -> install the package: nothing calls the program without it",
			},
		},
		{
			"hook leads nowhere", func(_ *testing.T, w *world) {
				delete(w.files, gate)
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch leads nowhere: lstat usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch: file does not exist -> install the package again, and remove what replaces its files",
			},
		},
		{
			"hook not executable", func(_ *testing.T, w *world) {
				w.files[gate] = script(0o644, 0)
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch has mode -rw-r--r--, so nm-dispatcher does not run it: it is not executable -> mend it, then repeat the event: sudo chmod 0755 /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"hook writable by others", func(_ *testing.T, w *world) {
				w.files[gate] = script(0o775, 0)
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch has mode -rwxrwxr-x, so nm-dispatcher does not run it: others can write to it -> mend it, then repeat the event: sudo chmod 0755 /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"hook set-UID", func(_ *testing.T, w *world) {
				w.files[gate] = script(0o755|fs.ModeSetuid, 0)
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch has mode urwxr-xr-x, so nm-dispatcher does not run it: others can write to it -> mend it, then repeat the event: sudo chmod 0755 /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"hook of a user's", func(_ *testing.T, w *world) {
				w.files[gate] = script(0o755, 1000)
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch belongs to user 1000, so nm-dispatcher does not run it -> give it to root, then repeat the event: sudo chown root: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"hook empty", func(_ *testing.T, w *world) {
				w.files[gate] = file("")
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch masks the hook -> remove it, then repeat the event: sudo rm /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"hook a directory", func(_ *testing.T, w *world) {
				w.files[gate] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch is no regular file -> install the package again",
			},
		},
		{
			"hook masked by a link", func(_ *testing.T, w *world) {
				w.files[admin] = symlink("/dev/null")
				w.files["dev/null"] = &fstest.MapFile{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666}
			},
			[]string{
				"hook fail: /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch masks the hook -> remove it, then repeat the event: sudo rm /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"hook masked by an empty file", func(_ *testing.T, w *world) {
				w.files[admin] = file("")
			},
			[]string{
				"hook fail: /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch masks the hook -> remove it, then repeat the event: sudo rm /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"hook replaced", func(_ *testing.T, w *world) {
				w.files[admin] = script(0o755, 0)
			},
			[]string{
				"hook warn: /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch is no link into no-wait.d: other scripts wait for the hook -> have the package's own instead: sudo rm /etc/NetworkManager/dispatcher.d/90-nm-azure-dispatch",
			},
		},
		{
			"hook a loop of links", func(_ *testing.T, w *world) {
				w.files[hook] = symlink("90-nm-azure-dispatch")
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch leads nowhere: too many levels of symbolic links -> install the package again, and remove what replaces its files",
			},
		},
		{
			"hook waits", func(_ *testing.T, w *world) {
				w.files[hook] = script(0o755, 0)
			},
			[]string{
				"hook warn: /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch is no link into no-wait.d: other scripts wait for the hook -> have the package's own instead: sudo rm /usr/lib/NetworkManager/dispatcher.d/90-nm-azure-dispatch",
			},
		},
		{
			"program absent", func(_ *testing.T, w *world) {
				delete(w.files, program)
			},
			[]string{
				"hook fail: /usr/libexec/nm-azure-dispatch is not there, or not executable -> install the package again",
			},
		},
		{
			"program not executable", func(_ *testing.T, w *world) {
				w.files[program] = script(0o644, 0)
			},
			[]string{
				"hook fail: /usr/libexec/nm-azure-dispatch is not there, or not executable -> install the package again",
			},
		},
		{
			"the bare program as hook", func(_ *testing.T, w *world) {
				w.files[hook] = symlink("no-wait.d/nm-azure-dispatch")
				w.files["usr/lib/NetworkManager/dispatcher.d/no-wait.d/nm-azure-dispatch"] = script(0o755, 0)
				delete(w.files, program)
			},
			nil,
		},
		{
			"SELinux label right", func(_ *testing.T, w *world) {
				w.files["sys/fs/selinux/enforce"] = file("1")
				w.label = "system_u:object_r:NetworkManager_dispatcher_script_t:s0"
			},
			nil,
		},
		{
			"SELinux label wrong", func(_ *testing.T, w *world) {
				w.files["sys/fs/selinux/enforce"] = file("1")
				w.label = "unconfined_u:object_r:user_home_t:s0"
			},
			[]string{
				"hook fail: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch has the SELinux label \"unconfined_u:object_r:user_home_t:s0\", want NetworkManager_dispatcher_script_t -> mend it, then repeat the event: sudo restorecon -v /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"SELinux label wrong, permissive", func(_ *testing.T, w *world) {
				w.files["sys/fs/selinux/enforce"] = file("0")
			},
			[]string{
				"hook warn: /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch has the SELinux label \"\", want NetworkManager_dispatcher_script_t -> mend it, then repeat the event: sudo restorecon -v /usr/lib/NetworkManager/dispatcher.d/no-wait.d/90-nm-azure-dispatch && sudo nmcli device reapply eth0",
			},
		},
		{
			"timer masked", func(_ *testing.T, w *world) {
				w.units["nm-azure-checkin.timer"] = live.Unit{File: "masked"}
			},
			[]string{
				"timer warn: nm-azure-checkin.timer is masked: the hook's 5 s are all that a boot has -> unmask it, unless that is meant so: sudo systemctl unmask nm-azure-checkin.timer",
			},
		},
		{
			"service masked", func(_ *testing.T, w *world) {
				w.units["nm-azure-checkin.service"] = live.Unit{File: "masked-runtime"}
			},
			[]string{
				"timer warn: nm-azure-checkin.service is masked: the hook's 5 s are all that a boot has -> unmask it, unless that is meant so: sudo systemctl unmask nm-azure-checkin.service",
			},
		},
		{
			"timer not started", func(_ *testing.T, w *world) {
				w.units["nm-azure-checkin.timer"] = live.Unit{File: "static", Active: "inactive"}
			},
			[]string{
				"timer warn: nm-azure-checkin.timer is inactive -> start it: sudo systemctl start nm-azure-checkin.timer",
			},
		},
		{
			"units absent", func(_ *testing.T, w *world) {
				delete(w.units, "nm-azure-checkin.timer")
				delete(w.units, "nm-azure-checkin.service")
			},
			[]string{
				"timer warn: nm-azure-checkin.timer and nm-azure-checkin.service are not installed -> install the package again: without them the hook's 5 s are all that a boot has",
			},
		},
		{
			"timer absent", func(_ *testing.T, w *world) {
				delete(w.units, "nm-azure-checkin.timer")
			},
			[]string{
				"timer warn: nm-azure-checkin.timer is not installed -> install the package again: without them the hook's 5 s are all that a boot has",
			},
		},
		{
			"service absent", func(_ *testing.T, w *world) {
				delete(w.units, "nm-azure-checkin.service")
			},
			[]string{
				"timer warn: nm-azure-checkin.service is not installed -> install the package again: without them the hook's 5 s are all that a boot has",
			},
		},
		{
			"service failed", func(_ *testing.T, w *world) {
				w.units["nm-azure-checkin.service"] = live.Unit{File: "static", Active: "failed"}
			},
			[]string{
				"timer warn: nm-azure-checkin.service has failed -> look why: sudo journalctl -b -u nm-azure-checkin.service",
			},
		},
		{
			"service at work", func(_ *testing.T, w *world) {
				w.units["nm-azure-checkin.service"] = live.Unit{File: "static", Active: "activating"}
			},
			nil,
		},
		{
			"no interface", func(_ *testing.T, w *world) {
				w.iface = ""
			},
			[]string{
				"device fail: the machine has no network interface -> look at them all: ip link",
				"lease skipped: not looked at: device failed",
				"option-245 skipped: not looked at: lease was skipped",
			},
		},
		{
			"another interface", func(_ *testing.T, w *world) {
				w.iface = "eth7"
			},
			[]string{
				"device fail: NetworkManager does not know eth7 -> name another with --interface; it knows: nmcli device",
				"lease skipped: not looked at: device failed",
				"option-245 skipped: not looked at: lease was skipped",
			},
		},
		{
			"unmanaged", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Managed, w.nm.Devices[0].State = false, 10
			},
			[]string{
				"device fail: eth0 is not managed by NetworkManager -> let it, and take the interface out of unmanaged-devices in NetworkManager.conf: sudo nmcli device set eth0 managed yes",
				"lease skipped: not looked at: device failed",
				"option-245 skipped: not looked at: lease was skipped",
			},
		},
		{
			"no carrier", func(_ *testing.T, w *world) {
				w.nm.Devices[0].State = 20
			},
			[]string{
				"device fail: eth0 has no carrier, or is not up -> look at the link: ip link show eth0",
				"lease skipped: not looked at: device failed",
				"option-245 skipped: not looked at: lease was skipped",
			},
		},
		{
			"disconnected", func(_ *testing.T, w *world) {
				w.nm.Devices[0] = live.Device{Interface: "eth0", Managed: true, State: 30, Reason: 39}
			},
			[]string{
				"device fail: eth0 is disconnected, reason 39 -> connect it: sudo nmcli device connect eth0",
				"lease skipped: not looked at: device failed",
				"option-245 skipped: not looked at: lease was skipped",
			},
		},
		{
			"waiting for DHCP", func(_ *testing.T, w *world) {
				w.nm.Devices[0].State, w.nm.Devices[0].Lease = 70, nil
			},
			[]string{
				"lease fail: no DHCPv4 lease: no DHCP server has answered on eth0 -> look for what keeps UDP ports 67 and 68 out, then ask again: sudo nmcli device connect eth0",
				"option-245 skipped: not looked at: lease failed",
			},
		},
		{
			"DHCP failed", func(_ *testing.T, w *world) {
				w.nm.Devices[0] = live.Device{Interface: "eth0", Managed: true, State: 30, Reason: 5}
			},
			[]string{
				"lease fail: no DHCPv4 lease: no DHCP server has answered on eth0 -> look for what keeps UDP ports 67 and 68 out, then ask again: sudo nmcli device connect eth0",
				"option-245 skipped: not looked at: lease failed",
			},
		},
		{
			"external", func(_ *testing.T, w *world) {
				w.nm.Devices[0].External, w.nm.Devices[0].Lease = true, nil
			},
			[]string{
				"device warn: eth0 is activated, profile \"Wired connection 1\", but was set up by somebody else before NetworkManager came, which then asks no DHCP server -> let NetworkManager do it: sudo nmcli device connect eth0",
				"lease skipped: NetworkManager asks no DHCP server where somebody else has set an interface up",
				"option-245 skipped: not looked at: lease was skipped",
			},
		},
		{
			"static profile", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Method, w.nm.Devices[0].Lease = "manual", nil
			},
			[]string{
				"lease warn: no DHCPv4: the profile \"Wired connection 1\" has ipv4.method=manual -> Azure wants DHCP: sudo nmcli connection modify 'Wired connection 1' ipv4.method auto && sudo nmcli connection up 'Wired connection 1'",
				"option-245 skipped: there is no lease, so the constant 168.63.129.16 counts",
			},
		},
		{
			"static profile, wrong address", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Method, w.nm.Devices[0].Lease = "manual", nil
				w.dialErr[constant] = syscall.EHOSTUNREACH
			},
			[]string{
				"lease warn: no DHCPv4: the profile \"Wired connection 1\" has ipv4.method=manual -> Azure wants DHCP: sudo nmcli connection modify 'Wired connection 1' ipv4.method auto && sudo nmcli connection up 'Wired connection 1'",
				"option-245 skipped: there is no lease, so the constant 168.63.129.16 counts",
				"tcp-80 fail: 168.63.129.16 port 80: no route to host -> the static address may not be the one that Azure gave this machine: sudo nmcli connection modify 'Wired connection 1' ipv4.method auto ipv4.gateway '' ipv4.addresses '' && sudo nmcli connection up 'Wired connection 1'",
				"goal-state skipped: not looked at: tcp-80 failed",
			},
		},
		{
			"lease without nameservers", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Lease.Nameservers = nil
			},
			[]string{
				"lease warn: 10.77.0.50, without any nameserver -> set some in the virtual network, or in the profile: sudo nmcli connection modify 'Wired connection 1' ipv4.dns 168.63.129.16 && sudo nmcli connection up 'Wired connection 1'",
			},
		},
		{
			"lease of a secondary NIC", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Lease.Routers, w.nm.Devices[0].Lease.Routes = nil, nil
			},
			[]string{
				"lease warn: 10.77.0.50, nameservers 168.63.129.16 10.77.0.1; no default route and no route to the WireServer: not the lease of a primary NIC -> name the primary one with --interface; these there are: nmcli device",
			},
		},
		{
			"no option 245", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Lease.WireServer, w.nm.Devices[0].Option245 = netip.Addr{}, ""
			},
			[]string{
				"option-245 warn: the lease has no option 245; the constant 168.63.129.16 counts -> nothing is to be done on Azure if the steps behind are ok; else ask who runs the DHCP server",
			},
		},
		{
			"option 245 is loopback", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Lease.WireServer = netip.MustParseAddr("127.0.0.1")
			},
			[]string{
				"option-245 warn: option 245: wire: server address 127.0.0.1: loopback; the constant 168.63.129.16 counts -> nothing is to be done on Azure if the steps behind are ok; else ask who runs the DHCP server",
			},
		},
		{
			"option 245 is another", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Lease.WireServer, w.nm.Devices[0].Option245 = second, "0a:4d:00:01"
			},
			[]string{
				"option-245 warn: 10.77.0.1 (0a:4d:00:01), not Azure's constant 168.63.129.16 -> nothing is to be done on Azure if the steps behind are ok; else ask who runs the DHCP server",
			},
		},
		{
			"option 245 is another, which does not answer", func(_ *testing.T, w *world) {
				w.nm.Devices[0].Lease.WireServer, w.nm.Devices[0].Option245 = other, "cb:00:71:01"
				w.dialErr[other] = syscall.ECONNREFUSED
			},
			[]string{
				"option-245 warn: 203.0.113.1 (cb:00:71:01), not Azure's constant 168.63.129.16 -> nothing is to be done on Azure if the steps behind are ok; else ask who runs the DHCP server",
				"tcp-80 warn: 203.0.113.1 port 80: connection refused; but the constant 168.63.129.16 answers, which is tried too -> ask who runs the DHCP server why option 245 is not Azure's",
			},
		},
		{
			"no route", func(_ *testing.T, w *world) {
				w.files["proc/net/route"] = file("")
				w.sourceErr = syscall.ENETUNREACH
			},
			[]string{
				"route fail: no route to 168.63.129.16 -> have NetworkManager set the routes anew; the profile must not have ipv4.never-default or ipv4.ignore-auto-routes: sudo nmcli device reapply eth0",
				"tcp-80 skipped: not looked at: route failed",
				"goal-state skipped: not looked at: tcp-80 was skipped",
			},
		},
		{
			"a route, but not for us", func(_ *testing.T, w *world) {
				w.sourceErr = syscall.EACCES
			},
			[]string{
				"route fail: nothing can be sent to 168.63.129.16: permission denied -> have NetworkManager set the routes anew: sudo nmcli device reapply eth0",
				"tcp-80 skipped: not looked at: route failed",
				"goal-state skipped: not looked at: tcp-80 was skipped",
			},
		},
		{
			"route by another table", func(_ *testing.T, w *world) {
				w.files["proc/net/route"] = file("")
			},
			nil,
		},
		{
			"two NICs, the route by the wrong one", func(_ *testing.T, w *world) {
				w.nm.Devices = append(w.nm.Devices, live.Device{Interface: "eth1", Managed: true, State: 100, Profile: "two", Lease: azureLease()})
				w.nm.Devices[0].Lease.Routes = nil
			},
			[]string{
				"route fail: 168.63.129.16 via 10.77.0.1 on eth0 from 10.77.0.50; Azure answers eth1 only, whose lease has the route -> give eth1 its routes back: sudo nmcli connection modify two ipv4.ignore-auto-routes no && sudo nmcli connection up two",
				"tcp-80 skipped: not looked at: route failed",
				"goal-state skipped: not looked at: tcp-80 was skipped",
			},
		},
		{
			"two NICs, no answer", func(_ *testing.T, w *world) {
				l := azureLease()
				l.Routes = nil
				w.nm.Devices = append(w.nm.Devices, live.Device{Interface: "eth1", Managed: true, State: 100, Profile: "two", Lease: l})
				w.hang["tcp"] = true
			},
			[]string{
				"tcp-80 fail: 168.63.129.16 port 80: no answer within 2s -> Azure answers the primary NIC only; prefer it, with its profile's name for PRIMARY: sudo nmcli connection modify PRIMARY ipv4.route-metric 50 && sudo nmcli connection up PRIMARY",
				"goal-state skipped: not looked at: tcp-80 failed",
			},
		},
		{
			"secondary address", func(_ *testing.T, w *world) {
				w.source = other
			},
			[]string{
				"route warn: 168.63.129.16 via 10.77.0.1 on eth0 from 203.0.113.1, not from the lease's 10.77.0.50: Azure may answer the primary address only -> see that the lease's comes first: ip address show eth0",
			},
		},
		{
			"no answer", func(_ *testing.T, w *world) {
				w.hang["tcp"] = true
			},
			[]string{
				"tcp-80 fail: 168.63.129.16 port 80: no answer within 2s -> look for a rule that keeps TCP port 80 of that address from being reached, also in a network appliance on the way: sudo nft list ruleset",
				"goal-state skipped: not looked at: tcp-80 failed",
			},
		},
		{
			"no answer for a user", func(_ *testing.T, w *world) {
				w.hang["tcp"], w.user = true, 1000
			},
			[]string{
				"tcp-80 fail: 168.63.129.16 port 80: no answer within 2s -> ask again as root, a firewall may let only root through: sudo nm-azure-dispatch doctor",
				"goal-state skipped: not looked at: tcp-80 failed",
			},
		},
		{
			"refused", func(_ *testing.T, w *world) {
				w.dialErr[constant] = fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED)
			},
			[]string{
				"tcp-80 fail: 168.63.129.16 port 80: connection refused -> wait a minute, the host may be busy with an update; then look for what rejects or redirects it: sudo nft list ruleset",
				"goal-state skipped: not looked at: tcp-80 failed",
			},
		},
		{
			"forbidden", func(_ *testing.T, w *world) {
				w.dialErr[constant] = syscall.EPERM
			},
			[]string{
				"tcp-80 fail: 168.63.129.16 port 80: operation not permitted -> look for a rule that keeps TCP port 80 of that address from being reached, also in a network appliance on the way: sudo nft list ruleset",
				"goal-state skipped: not looked at: tcp-80 failed",
			},
		},
		{
			"goal state forbidden for a user", func(_ *testing.T, w *world) {
				w.gsErr, w.user = &wire.StatusError{Code: 403, URL: "http://168.63.129.16/machine/?comp=goalstate"}, 1000
			},
			[]string{
				"goal-state fail: http://168.63.129.16/machine/?comp=goalstate: 403 Forbidden: \"\" -> ask again as root: sudo nm-azure-dispatch doctor",
			},
		},
		{
			"goal state 410", func(_ *testing.T, w *world) {
				w.gsErr = &wire.StatusError{Code: 410, URL: "http://168.63.129.16/machine/?comp=goalstate", Body: "Gone"}
			},
			[]string{
				"goal-state fail: http://168.63.129.16/machine/?comp=goalstate: 410 Gone: \"Gone\" -> wait some minutes, the host answers so while it is updated; if it goes on, stop and start the VM",
			},
		},
		{
			"goal state hangs", func(_ *testing.T, w *world) {
				w.hang["goalstate"] = true
			},
			[]string{
				"goal-state fail: goalstate: no answer within 2.1s -> wait some minutes, the host answers so while it is updated; if it goes on, stop and start the VM",
			},
		},
		{
			"goal state reset", func(_ *testing.T, w *world) {
				w.gsErr = fmt.Errorf("wire: GET http://168.63.129.16/machine/?comp=goalstate: %w", syscall.ECONNRESET)
			},
			[]string{
				"goal-state fail: GET http://168.63.129.16/machine/?comp=goalstate: connection reset by peer -> wait some minutes, the host answers so while it is updated; if it goes on, stop and start the VM",
			},
		},
		{
			"a proxy answers", func(_ *testing.T, w *world) {
				w.gsErr = errors.New("wire: goal state: root element is html, want GoalState")
			},
			[]string{
				"goal-state fail: goal state: root element is html, want GoalState -> something else answers in the WireServer's place, mostly a proxy that must leave this address out; see what it says: curl -sH x-ms-version:2012-11-30 'http://168.63.129.16/machine/?comp=goalstate'",
			},
		},
		{
			"no boot ID", func(_ *testing.T, w *world) {
				w.boot = ""
			},
			[]string{
				"record warn: the boot ID cannot be read, so no record counts -> look at it: cat /proc/sys/kernel/random/boot_id",
			},
		},
		{
			"no record", func(_ *testing.T, w *world) {
				w.boot = "b0070002-0000-4000-8000-000000000002"
			},
			[]string{
				"record fail: in this boot nothing has checked in, nor tried to -> once the steps before are ok: sudo systemctl start nm-azure-checkin.service",
			},
		},
		{
			"record a directory", func(t *testing.T, w *world) {
				w.records = boot.Dir(filepath.Join(t.TempDir(), "state"))
				if err := os.MkdirAll(filepath.Join(string(w.records), "check-in.json"), 0o755); err != nil {
					t.Fatal(err)
				}
			},
			[]string{
				"record warn: /run/nm-azure-dispatch/check-in.json is a d---------, want a ----------: remove it -> remove what is in the way, then check in: sudo systemctl start nm-azure-checkin.service",
			},
		},
		{
			"trying, alone", func(t *testing.T, w *world) {
				w.record(t, boot.CheckIn{State: boot.Trying, Attempts: 7, LastError: "wire: connection refused"})
			},
			[]string{
				"record fail: not checked in after 7 attempts; last: wire: connection refused; nobody is trying any more -> once the steps before are ok: sudo systemctl start nm-azure-checkin.service",
			},
		},
		{
			"trying, at work", func(t *testing.T, w *world) {
				w.record(t, boot.CheckIn{State: boot.Trying, Attempts: 1, LastError: "wire: connection refused"})
				w.lock(t)
			},
			[]string{
				"record warn: not checked in after 1 attempt; last: wire: connection refused; process 4711 goes on trying -> mend what failed before this, the rest follows by itself",
			},
		},
		{
			"no record yet, at work", func(t *testing.T, w *world) {
				w.boot = "b0070002-0000-4000-8000-000000000002"
				w.lock(t)
			},
			[]string{
				"record warn: process 4711 is checking in -> wait, and look again",
			},
		},
		{
			"failure reported", func(t *testing.T, w *world) {
				w.record(t, boot.CheckIn{State: boot.Failed})
			},
			[]string{
				"record fail: ProvisioningFailed was reported, and that stands for this boot -> restart the VM once the cause is mended, or check in all the same: sudo nm-azure-dispatch check-in --force",
			},
		},
		{
			"waagent", func(_ *testing.T, w *world) {
				w.units["waagent.service"] = live.Unit{File: "enabled"}
			},
			[]string{
				"agents warn: waagent checks in too -> keep one; Ready makes Azure detach the disk that waagent reads: sudo systemctl disable --now waagent.service",
			},
		},
		{
			"cloud-init and azure-init", func(_ *testing.T, w *world) {
				w.units["cloud-init.service"] = live.Unit{File: "enabled"}
				w.units["cloud-init-network.service"] = live.Unit{File: "enabled"}
				w.units["azure-init.service"] = live.Unit{Active: "active"}
			},
			[]string{
				"agents warn: cloud-init and azure-init check in too -> keep one; cloud-init reports Ready itself, and needs its disk until then: sudo touch /etc/cloud/cloud-init.disabled",
			},
		},
		{
			"cloud-init turned off", func(_ *testing.T, w *world) {
				w.units["cloud-init.service"] = live.Unit{File: "enabled"}
				w.files["etc/cloud/cloud-init.disabled"] = file("")
			},
			nil,
		},
		{
			"afterburn", func(_ *testing.T, w *world) {
				w.units["afterburn-checkin.service"] = live.Unit{File: "enabled"}
			},
			nil,
		},
		{
			"resolved masked", func(_ *testing.T, w *world) {
				w.resolvedErr = live.ErrNotRunning
				w.units["systemd-resolved.service"] = live.Unit{File: "masked"}
				delete(w.files, "run/systemd/resolve/stub-resolv.conf")
			},
			[]string{
				"resolved fail: systemd-resolved is masked, but /etc/resolv.conf leads to it -> unmask it, then repeat the event: sudo systemctl unmask systemd-resolved.service && sudo systemctl enable --now systemd-resolved.service && sudo nmcli device reapply eth0",
				"resolv-conf fail: /etc/resolv.conf leads to /run/systemd/resolve/stub-resolv.conf, which is not there -> have NetworkManager write it: sudo nmcli general reload dns-rc",
				"link-dns skipped: not looked at: resolved failed",
				"lookup skipped: not looked at: resolved failed",
			},
		},
		{
			"resolved stopped", func(_ *testing.T, w *world) {
				w.resolvedErr = live.ErrNotRunning
				w.units["systemd-resolved.service"] = live.Unit{File: "enabled"}
			},
			[]string{
				"resolved fail: systemd-resolved is not running, but /etc/resolv.conf leads to it -> start it, then repeat the event: sudo systemctl enable --now systemd-resolved.service && sudo nmcli device reapply eth0",
				"link-dns skipped: not looked at: resolved failed",
				"lookup skipped: not looked at: resolved failed",
			},
		},
		{
			"resolved absent, but used", func(_ *testing.T, w *world) {
				w.resolvedErr = live.ErrNotRunning
				delete(w.units, "systemd-resolved.service")
			},
			[]string{
				"resolved fail: systemd-resolved is not installed, but /etc/resolv.conf leads to it -> install it, or have NetworkManager write the file: sudo rm /etc/resolv.conf && sudo nmcli general reload dns-rc",
				"link-dns skipped: not looked at: resolved failed",
				"lookup skipped: not looked at: resolved failed",
			},
		},
		{
			"resolved hangs", func(_ *testing.T, w *world) {
				w.hang["resolved"] = true
			},
			[]string{
				"resolved fail: resolved: no answer within 2.1s -> restart it: sudo systemctl restart systemd-resolved.service",
				"link-dns skipped: not looked at: resolved failed",
				"lookup skipped: not looked at: resolved failed",
			},
		},
		{
			"RHCOS: no resolved", func(_ *testing.T, w *world) {
				w.rhcos("168.63.129.16", "10.77.0.1")
			},
			[]string{
				"resolved skipped: systemd-resolved is not running, and /etc/resolv.conf does not lead to it: the nameservers are NetworkManager's",
				"lookup skipped: not looked at: resolved was skipped",
			},
		},
		{
			"RHCOS: another nameserver in resolv.conf", func(_ *testing.T, w *world) {
				w.rhcos("203.0.113.1")
				w.answers[other] = resolv.Answer{EDNS: true}
			},
			[]string{
				"resolved skipped: systemd-resolved is not running, and /etc/resolv.conf does not lead to it: the nameservers are NetworkManager's",
				"link-dns warn: /etc/resolv.conf has 203.0.113.1, NetworkManager wants 168.63.129.16 10.77.0.1 -> have NetworkManager write it: sudo nmcli general reload dns-rc",
				"lookup skipped: not looked at: resolved was skipped",
			},
		},
		{
			"RHCOS: nobody writes resolv.conf", func(_ *testing.T, w *world) {
				w.rhcos()
				w.nm.DNSMode, w.nm.RcManager = "none", "unmanaged"
			},
			[]string{
				"resolved skipped: systemd-resolved is not running, and /etc/resolv.conf does not lead to it: the nameservers are NetworkManager's",
				"resolv-conf fail: /etc/resolv.conf names no nameserver -> have NetworkManager write it: sudo nmcli general reload dns-rc",
				"nm-dns warn: mode none, resolv.conf unmanaged: nobody writes /etc/resolv.conf -> remove dns= and rc-manager= from NetworkManager.conf, then have it read that: sudo nmcli general reload",
				"link-dns fail: /etc/resolv.conf has no nameservers, NetworkManager wants 168.63.129.16 10.77.0.1 -> have NetworkManager write it: sudo nmcli general reload dns-rc",
				"lookup skipped: not looked at: resolved was skipped",
			},
		},
		{
			"resolv.conf absent", func(_ *testing.T, w *world) {
				delete(w.files, "etc/resolv.conf")
			},
			[]string{
				"resolv-conf fail: /etc/resolv.conf cannot be read: lstat etc/resolv.conf: file does not exist -> link it to systemd-resolved: sudo ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf",
			},
		},
		{
			"resolv.conf past resolved", func(_ *testing.T, w *world) {
				w.files["etc/resolv.conf"] = file("nameserver 8.8.8.8\n")
			},
			[]string{
				"resolv-conf warn: /etc/resolv.conf names 8.8.8.8, past systemd-resolved -> link it to systemd-resolved: sudo ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf",
			},
		},
		{
			"the stub is off", func(_ *testing.T, w *world) {
				w.resolved.Stub = "no"
			},
			[]string{
				"resolv-conf fail: /etc/resolv.conf names the stub of systemd-resolved, which is turned off -> remove DNSStubListener=no from /etc/systemd/resolved.conf, then restart it: sudo systemctl restart systemd-resolved.service",
			},
		},
		{
			"link without nameservers", func(_ *testing.T, w *world) {
				w.link()
			},
			[]string{
				"link-dns fail: systemd-resolved has no nameservers, NetworkManager wants 168.63.129.16 10.77.0.1 -> have the hook see to it: sudo nmcli device reapply eth0",
			},
		},
		{
			"link without nameservers, no default route", func(_ *testing.T, w *world) {
				w.link()
				w.files["proc/net/route"] = file("")
			},
			[]string{
				"link-dns warn: systemd-resolved has no nameservers for eth0, which has no default route -> nothing is to be done if another interface has them: resolvectl dns",
			},
		},
		{
			"nobody wants nameservers", func(_ *testing.T, w *world) {
				w.link()
				w.wish()
			},
			[]string{
				"link-dns fail: systemd-resolved has no nameservers, and NetworkManager wants none for eth0; the lease has 168.63.129.16 10.77.0.1, NetworkManager was told otherwise -> take the lease's, or set some: sudo nmcli connection modify 'Wired connection 1' ipv4.ignore-auto-dns no ipv4.dns 168.63.129.16 && sudo nmcli connection up 'Wired connection 1'",
			},
		},
		{
			"NetworkManager wants none, somebody else does", func(_ *testing.T, w *world) {
				w.wish()
			},
			nil,
		},
		{
			"wrong nameservers by hand", func(_ *testing.T, w *world) {
				w.link(other)
				w.answers[other] = resolv.Answer{}
			},
			[]string{
				"link-dns fail: somebody gave eth0 203.0.113.1, NetworkManager wants 168.63.129.16 10.77.0.1 -> take them back, unless they are meant: sudo resolvectl revert eth0 && sudo nmcli device reapply eth0",
			},
		},
		{
			"only global nameservers", func(_ *testing.T, w *world) {
				w.link()
				w.resolved.State.Global = []resolv.Server{{Addr: second}}
			},
			[]string{
				"link-dns warn: only the global nameservers 10.77.0.1, NetworkManager wants 168.63.129.16 10.77.0.1 -> they are DNS= in resolved.conf, or a resolv.conf of the administrator's: resolvectl status",
			},
		},
		{
			"the profile's nameservers", func(_ *testing.T, w *world) {
				w.wish("10.77.0.1")
				w.link(second)
			},
			nil,
		},
		{
			"one nameserver silent", func(_ *testing.T, w *world) {
				delete(w.answers, second)
			},
			[]string{
				"nameservers warn: 168.63.129.16: NOERROR in 1.2ms; 10.77.0.1: no answer -> see to those that do not answer well, or take them out of the virtual network's DNS servers",
			},
		},
		{
			"all nameservers silent", func(_ *testing.T, w *world) {
				w.answers = nil
				w.lookUpErr = errors.New("All attempts to contact name servers or networks failed (org.freedesktop.DBus.Error.Timeout)")
			},
			[]string{
				"nameservers fail: 168.63.129.16: no answer; 10.77.0.1: no answer -> see that they run, where they are your own, and that nothing keeps UDP and TCP port 53 from being reached: sudo nft list ruleset",
				"lookup fail: lab.internal.cloudapp.net: All attempts to contact name servers or networks failed (org.freedesktop.DBus.Error.Timeout) -> see to the nameservers before this, then ask again: resolvectl query lab.internal.cloudapp.net",
			},
		},
		{
			"nameservers hang", func(_ *testing.T, w *world) {
				w.hang["nameservers"], w.hang["lookup"] = true, true
			},
			[]string{
				"nameservers fail: 168.63.129.16: no answer; 10.77.0.1: no answer -> see that they run, where they are your own, and that nothing keeps UDP and TCP port 53 from being reached: sudo nft list ruleset",
				"lookup fail: lab.internal.cloudapp.net: lookup: no answer within 2.1s -> see to the nameservers before this, then ask again: resolvectl query lab.internal.cloudapp.net",
			},
		},
		{
			"nameservers refuse", func(_ *testing.T, w *world) {
				w.answers = map[netip.Addr]resolv.Answer{constant: {Rcode: 5, EDNS: true}, second: {Rcode: 99, Truncated: true}}
				w.lookUpErr = errors.New("could not")
			},
			[]string{
				"nameservers fail: 168.63.129.16: REFUSED in 0s; 10.77.0.1: rcode 99 in 0s, cut over UDP, whole over TCP, no EDNS -> have them answer this machine (recursion allowed, forwarders in reach), or set others in the virtual network",
				"lookup fail: lab.internal.cloudapp.net: could not -> see to the nameservers before this, then ask again: resolvectl query lab.internal.cloudapp.net",
			},
		},
		{
			"no such name", func(_ *testing.T, w *world) {
				w.found = live.Answer{Error: "org.freedesktop.resolve1.DnsError.NXDOMAIN"}
			},
			nil,
		},
		{
			"no such name, asked for by the operator", func(_ *testing.T, w *world) {
				w.name = "db.example"
				w.found = live.Answer{Error: "org.freedesktop.resolve1.DnsError.NXDOMAIN"}
			},
			[]string{
				"lookup warn: db.example: a nameserver answers that it has no address (org.freedesktop.resolve1.DnsError.NXDOMAIN) -> see if the right nameservers are asked: resolvectl query db.example",
			},
		},
		{
			"everything hangs", func(_ *testing.T, w *world) {
				for _, what := range []string{"networkmanager", "resolved", "systemd", "tcp", "goalstate", "nameservers", "lookup"} {
					w.hang[what] = true
				}
			},
			[]string{
				"networkmanager fail: networkmanager: no answer within 2.1s -> restart it; if that does not help, restart the machine: sudo systemctl restart NetworkManager.service",
				"dispatcher fail: NetworkManager-dispatcher.service is not installed -> install NetworkManager with its dispatcher",
				"timer warn: nm-azure-checkin.timer and nm-azure-checkin.service are not installed -> install the package again: without them the hook's 5 s are all that a boot has",
				"device skipped: not looked at: networkmanager failed",
				"lease skipped: not looked at: device was skipped",
				"option-245 skipped: not looked at: lease was skipped",
				"tcp-80 fail: 168.63.129.16 port 80: no answer within 2s -> look for a rule that keeps TCP port 80 of that address from being reached, also in a network appliance on the way: sudo nft list ruleset",
				"goal-state skipped: not looked at: tcp-80 failed",
				"resolved fail: resolved: no answer within 2.1s -> restart it: sudo systemctl restart systemd-resolved.service",
				"nm-dns skipped: not looked at: networkmanager failed",
				"link-dns skipped: not looked at: networkmanager failed",
				"nameservers skipped: there are none to ask",
				"lookup skipped: not looked at: resolved failed",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := healthy(t)
			tt.change(t, w)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				if diff := cmp.Diff(tt.want, w.notOK(t)); diff != "" {
					t.Errorf("steps that are not ok (-want +got):\n%s", diff)
				}
				if took := time.Since(start); took > doctor.Limit {
					t.Errorf("took %v, the limit is %v", took, doctor.Limit)
				}
			})
		})
	}
}
