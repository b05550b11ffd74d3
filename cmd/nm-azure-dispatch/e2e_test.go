package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/bustest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/golden"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

const leaseEnv = "DHCP4_IP_ADDRESS=10.0.0.4"

// daemons puts NetworkManager and resolved on the machine's system bus. The
// device is lo, the one interface that the namespace has.
func daemons(t testing.TB) (*bustest.Bus, *bustest.NetworkManager, *bustest.Resolved) {
	t.Helper()
	bus, err := bustest.Start("/run/dbus/system_bus_socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Close)
	nm := bus.NetworkManager(t, []bustest.Device{{Interface: "lo", State: 100, Options: map[string]string{
		"ip_address": "10.0.0.4", "routers": "10.0.0.1", "private_245": "a8:3f:81:10", "domain_name_servers": "127.53.1.1 10.0.0.2",
	}}}, []map[string]any{
		{"interface": "lo", "nameservers": []string{"10.0.0.2"}, "domains": []string{"a.example"}, "priority": int32(100), "vpn": false},
	})
	return bus, nm, bus.Resolved(t, 1)
}

// One event does all there is to do; the next finds it done.
func TestEvent(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		bus, nm, resolved := daemons(t)
		server, journal := m.wireServer(wiretest.Script{}), m.journald()
		calls := bus.Monitor(t, nm.Conn, resolved.Conn)

		umask := syscall.Umask(0o777) // the program has its own: every user can read the records
		status, stderr := m.event("lo", "up", leaseEnv)
		syscall.Umask(umask)
		if status != 0 || stderr != "" {
			t.Errorf("status %d, stderr %q", status, stderr)
		}
		for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o755, "check-in.json": 0o644, "links": os.ModeDir | 0o755, "links/1.json": 0o644} {
			fi, err := os.Stat(filepath.Join("/run/nm-azure-dispatch", name))
			m.must(err)
			if fi.Mode() != want {
				t.Errorf("mode of %q is %v, want %v", name, fi.Mode(), want)
			}
		}
		if diff := cmp.Diff([]string{"GET /machine/?comp=goalstate", "POST /machine/?comp=health"}, requests(server)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		want := []string{"SetLinkDNS 1 [{2 [10 0 0 2]}]", "SetLinkDomains 1 [{a.example false}]", "FlushCaches"}
		flushed := func() bool { // the program does not wait for it
			return len(resolved.Calls()) == len(want) && slices.Contains(calls(), "org.freedesktop.resolve1.Manager.FlushCaches")
		}
		for end := time.Now().Add(time.Minute); !flushed() && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		if diff := cmp.Diff(want, resolved.Calls()); diff != "" {
			t.Errorf("calls to resolved (-want +got):\n%s", diff)
		}
		compare(t, "journal/up.golden", journal.taken(t))
		compare(t, "check-in.json.golden", read(t, "/run/nm-azure-dispatch/check-in.json"))
		compare(t, "link.json.golden", read(t, "/run/nm-azure-dispatch/links/1.json"))
		withPush := len(calls()) // Hello among them
		if withPush > 8 {        // FlushCaches among them, which is not waited for
			t.Errorf("%d calls with a push, want at most 8: %v", withPush, calls())
		}

		if status, stderr := m.event("lo", "dhcp4-change", leaseEnv); status != 0 || stderr != "" {
			t.Errorf("again: status %d, stderr %q", status, stderr)
		}
		if n := len(requests(server)); n != 2 {
			t.Errorf("again: %d requests in all, want 2", n)
		}
		if n := len(resolved.Calls()); n != 3 {
			t.Errorf("again: %d calls to resolved in all, want 3", n)
		}
		if got := journal.taken(t); got != "" {
			t.Errorf("again: journal %q, want nothing", got)
		}
		without := len(calls()) - withPush
		if without > 3 {
			t.Errorf("%d calls without a push, want at most 3: %v", without, calls()[withPush:])
		}
		t.Logf("calls: %d with a push, %d without: %v", withPush, without, calls())
	})
}

func requests(s *wiretest.Server) (out []string) {
	for _, r := range s.Requests() {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

// Not an event of ours, a port of a bridge, another platform: no socket, no file, no word.
func TestNothingToDo(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		server, journal := m.wireServer(wiretest.Script{}), m.journald()
		m.command("ip", "link", "add", "br0", "type", "bridge")
		m.command("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
		m.command("ip", "link", "set", "v0", "master", "br0")
		m.must(syscall.Mount("sysfs", "/sys", "sysfs", 0, "")) // that of this network namespace
		for _, tt := range []struct{ name, iface, action, cmdline string }{
			{"not ours", "lo", "connectivity-change", ""},
			{"no device", "none", "hostname", ""},
			{"static up", "lo", "up", ""},
			{"down with nothing of ours", "lo", "down", ""},
			{"port", "v0", "dhcp4-change", ""},
			{"another platform", "lo", "dhcp4-change", "ignition.platform.id=qemu"},
			{"no platform", "lo", "dhcp4-change", "quiet"},
		} {
			if tt.cmdline != "" {
				m.cmdline(tt.cmdline)
			}
			status, stderr := m.event(tt.iface, tt.action)
			if got := journal.taken(t); status != 0 || stderr != "" || got != "" {
				t.Errorf("%s: status %d, stderr %q, journal %q", tt.name, status, stderr, got)
			}
		}
		if n := len(server.Requests()); n > 0 {
			t.Errorf("%d requests", n)
		}
		if _, err := os.Lstat("/run/nm-azure-dispatch"); err == nil {
			t.Error("the state directory was made")
		}
	})
}

// A device that has become a port loses what was pushed for it when it goes down.
func TestDownOfPort(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		m.command("ip", "link", "add", "br0", "type", "bridge")
		m.command("ip", "link", "add", "v0", "master", "br0", "type", "veth", "peer", "name", "v1")
		m.must(syscall.Mount("sysfs", "/sys", "sysfs", 0, "")) // that of this network namespace
		port, err := net.InterfaceByName("v0")
		m.must(err)
		bus, err := bustest.Start("/run/dbus/system_bus_socket")
		m.must(err)
		t.Cleanup(bus.Close)
		bus.NetworkManager(t, nil, nil)
		resolved := bus.Resolved(t, int32(port.Index))
		resolved.Set([]bustest.Server{{Ifindex: int32(port.Index), Family: 2, Addr: []byte{10, 0, 0, 2}}}, nil)
		id := strings.TrimSpace(read(t, "/proc/sys/kernel/random/boot_id"))
		rec := boot.Link{Interface: "v0", State: boot.Pushed, Nameservers: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}
		m.must(boot.Store{Dir: "/run/nm-azure-dispatch", BootID: id}.WriteLink(port.Index, rec))
		m.journald()
		status, stderr := m.event("v0", "down")
		if want := fmt.Sprintf("SetLinkDNS %d []", port.Index); status != 0 || stderr != "" || !slices.Contains(resolved.Calls(), want) {
			t.Errorf("status %d, stderr %q, calls to resolved %v, want %s", status, stderr, resolved.Calls(), want)
		}
	})
}

// Where a read never returns, and so no context helps, the hook ends all the same.
func TestHardStop(t *testing.T) {
	if testing.Short() {
		t.Skip("takes six seconds")
	}
	beside(t)
	inside(t, func(t *testing.T, m *machine) {
		m.must(syscall.Mount("test", "/sys/class", "tmpfs", 0, "mode=755"))
		m.must(os.MkdirAll("/sys/class/net/lo", 0o755))
		m.must(syscall.Mkfifo("/sys/class/net/lo/ifindex", 0o644))
		status, stderr := m.event("lo", "up", leaseEnv)
		if want := "nm-azure-dispatch: lo up: not done after 6s, stopped\n"; status != 1 || stderr != want {
			t.Errorf("status %d, stderr %q, want 1 and %q", status, stderr, want)
		}
	})
}

// Only root changes anything or reports.
func TestOnlyRoot(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		server := m.wireServer(wiretest.Script{})
		for _, args := range []string{"hook lo dhcp4-change", "check-in", "check-in --server 168.63.129.16", "report-failure --reason x"} {
			cmd := exec.Command(binary(), strings.Fields(args)...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "only root can do that: use sudo") {
				t.Errorf("%s: %v: %s", args, err, out)
			}
		}
		if got := requests(server); len(got) > 0 {
			t.Errorf("requests %v", got)
		}
	})
}

// 40 events at once: one Ready.
func TestConcurrentEvents(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		daemons(t)
		server := m.wireServer(wiretest.Script{})
		m.journald()
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if status, stderr := m.event("lo", "up", leaseEnv); status != 0 {
					t.Errorf("status %d: %s", status, stderr)
				}
			})
		}
		wg.Wait()
		if got := requests(server); len(got) != 2 {
			t.Errorf("requests %v, want one goal state and one health", got)
		}
	})
}

// Without journald the entries are lines on stderr.
func TestNoJournal(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		daemons(t)
		m.wireServer(wiretest.Script{})
		status, stderr := m.event("lo", "up", leaseEnv)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		compare(t, "stderr.golden", strings.Join(lines, "\n\n"))
		if status != 0 {
			t.Errorf("status %d", status)
		}
	})
}

// compare compares with a golden file, in which what changes from run to run is left out, and messages are the names of
// their kinds.
func compare(t *testing.T, name, got string) {
	t.Helper()
	for _, re := range []string{`(after_boot_ms"?[=:] ?)\d+`, `(NM_AZURE_AFTER_BOOT_MS=)\d+`, `((?:boot_id|_at)": )"[^"]*"`, `(:)\d{4,5}(->)`} {
		got = regexp.MustCompile(re).ReplaceAllString(got, "${1}X")
	}
	for _, k := range journal.Kinds() {
		got = strings.ReplaceAll(got, k.Message, "<"+k.Name+">")
	}
	entries := regexp.MustCompile(`\n\n+`).Split(strings.TrimSpace(got), -1) // the journal's, in no certain order
	slices.Sort(entries)
	got = strings.Join(entries, "\n\n") + "\n"
	golden.Check(t, filepath.Join("testdata", name), got)
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Ceilings that do not flicker; the ratios of times are printed by make bench.
func TestCeilings(t *testing.T) {
	fi, err := os.Stat(binary())
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(9 << 20); fi.Size() > limit {
		t.Errorf("the program is %d bytes long, the limit is %d", fi.Size(), limit)
	}
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n, limit := bytes.Count(out, []byte("\n")), 235; n > limit {
		t.Errorf("%d packages are linked, the limit is %d", n, limit)
	}
	faults := []int64{}
	for range 11 {
		cmd := exec.Command(binary(), "hook", "lo", "dhcp4-change")
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("no-op: %v %s", err, out)
		}
		faults = append(faults, cmd.ProcessState.SysUsage().(*syscall.Rusage).Minflt)
	}
	slices.Sort(faults)
	t.Logf("minor page faults of a no-op: %v", faults)
	if median, limit := faults[len(faults)/2], int64(400); median > limit {
		t.Errorf("a no-op takes %d minor page faults, the limit is %d", median, limit)
	}
}

// The records are JSON for others to read.
func TestRecordIsJSON(t *testing.T) {
	for _, name := range []string{"check-in.json.golden", "link.json.golden"} {
		b := regexp.MustCompile(`: X`).ReplaceAllString(read(t, filepath.Join("testdata", name)), `: "X"`)
		if !json.Valid([]byte(b)) {
			t.Errorf("%s is no JSON", name)
		}
	}
}
