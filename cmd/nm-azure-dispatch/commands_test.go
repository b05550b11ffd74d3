package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// The command checks in once a boot, by the lease that there is.
func TestCheckInCommand(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		daemons(t)
		server := m.wireServer(wiretest.Script{})
		m.journald()
		steps := []struct {
			args           string
			status         int
			stdout, stderr string // what they begin with
			requests       int    // in all
		}{
			{"check-in --timeout 30s", 0, "checked in: wireserver 168.63.129.16 (option-245), via health, at attempt 1, ", "", 2},
			{"check-in", 0, "already checked in: wireserver 168.63.129.16 (option-245), via health, at attempt 1, ", "", 2},
			{"check-in --force", 0, "checked in: ", "", 4},
			{"report-failure --reason late", 1, "", "nm-azure-dispatch: report-failure: refused: this boot has already been reported as ready", 4},
			{"check-in --force --server 10.0.0.4 --timeout 300ms", 1, "", "nm-azure-dispatch: check-in: ", 4},
		}
		for _, s := range steps {
			status, stdout, stderr := m.run(strings.Fields(s.args))
			if status != s.status || !strings.HasPrefix(stdout, s.stdout) || !strings.HasPrefix(stderr, s.stderr) {
				t.Errorf("%s: status %d, stdout %q, stderr %q", s.args, status, stdout, stderr)
			}
			if n := len(server.Requests()); n != s.requests {
				t.Errorf("%s: %d requests in all, want %d", s.args, n, s.requests)
			}
		}
	})
}

// While the nameservers cannot be configured, the command says once what it waits for.
func TestCheckInWaits(t *testing.T) {
	beside(t)
	inside(t, func(t *testing.T, m *machine) {
		_, _, resolved := daemons(t)
		resolved.Fail("org.freedesktop.DBus.Error.Failed")
		m.wireServer(wiretest.Script{})
		m.journald()
		status, stdout, stderr := m.run([]string{"check-in", "--timeout", "2500ms"})
		const want = "nm-azure-dispatch: check-in: retrying: nameservers of lo: resolv: "
		if status != 1 || !strings.HasPrefix(stdout, "checked in: ") || !strings.HasPrefix(stderr, want) || strings.Count(stderr, want) != 1 {
			t.Errorf("status %d, stdout %q, stderr %q; want one line with %q", status, stdout, stderr, want)
		}
	})
}

// Without bus and lease the command uses the default address, and logs why.
func TestCheckInWithoutBus(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		m.wireServer(wiretest.Script{})
		status, stdout, stderr := m.run([]string{"check-in", "--timeout", "30s"})
		if want := "checked in: wireserver 168.63.129.16 (constant), "; status != 0 || !strings.HasPrefix(stdout, want) {
			t.Errorf("status %d, stdout %q, want %q", status, stdout, want)
		}
		if want := "the lease cannot be read: system bus: "; !strings.Contains(stderr, want) {
			t.Errorf("stderr %q lacks %q", stderr, want)
		}
	})
}

// --server names the WireServer on any platform.
func TestCheckInOperator(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		m.cmdline("ignition.platform.id=qemu")
		server := m.wireServer(wiretest.Script{})
		m.journald()
		if status, stdout, _ := m.run([]string{"check-in"}); status != 0 || !strings.HasPrefix(stdout, "nothing to do: this machine is not Azure (ignition.platform.id=qemu)") {
			t.Errorf("status %d, stdout %q", status, stdout)
		}
		status, stdout, stderr := m.run([]string{"check-in", "--server", "168.63.129.16"})
		if want := "checked in: wireserver 168.63.129.16 (operator), "; status != 0 || !strings.HasPrefix(stdout, want) {
			t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
		}
		if n := len(server.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// A reported failure is final for the boot: no event and no unit sends Ready
// after it. The program needs nothing but itself, /proc, /run and a network, as
// in an initrd.
func TestReportFailureInBareTree(t *testing.T) {
	inside(t, func(t *testing.T, m *machine) {
		server := m.wireServer(wiretest.Script{})
		root := t.TempDir()
		for _, dir := range []string{"proc", "run"} {
			m.must(os.Mkdir(filepath.Join(root, dir), 0o755))
		}
		program, err := os.ReadFile(binary())
		m.must(err)
		m.must(os.WriteFile(filepath.Join(root, "nm-azure-dispatch"), program, 0o755))
		m.must(syscall.Mount("/proc", filepath.Join(root, "proc"), "", syscall.MS_BIND|syscall.MS_REC, ""))
		m.must(syscall.Mount("/run", filepath.Join(root, "run"), "", syscall.MS_BIND, ""))
		t.Cleanup(func() {
			m.must(syscall.Unmount(filepath.Join(root, "proc"), syscall.MNT_DETACH))
			m.must(syscall.Unmount(filepath.Join(root, "run"), syscall.MNT_DETACH))
		})
		cmd := exec.Command("/nm-azure-dispatch", "report-failure", "--timeout", "30s", "--reason", "ignition: <disks> failed & more")
		cmd.Env, cmd.Dir = []string{}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil || out.String() != "reported ProvisioningFailed to 168.63.129.16, via health, at attempt 1\n" {
			t.Fatalf("%v: %s%s", err, out.String(), errOut.String())
		}
		body := server.Requests()[1].Body
		for _, want := range []string{"<State>NotReady</State>", "<SubStatus>ProvisioningFailed</SubStatus>", "<Description>ignition: &lt;disks&gt; failed &amp; more</Description>"} {
			if !strings.Contains(body, want) {
				t.Errorf("the report lacks %s:\n%s", want, body)
			}
		}

		daemons(t)
		m.journald()
		if status, stderr := m.event("lo", "up", leaseEnv); status != 0 || stderr != "" {
			t.Errorf("event: status %d, stderr %q", status, stderr)
		}
		status, stdout, _ := m.run([]string{"check-in"})
		if want := "not checked in: ProvisioningFailed was reported in this boot; use --force to check in anyway\n"; status != 0 || stdout != want {
			t.Errorf("check-in: status %d, stdout %q", status, stdout)
		}
		again, _, _ := m.run([]string{"report-failure", "--reason", "again"})
		if diff := cmp.Diff([]string{"GET /machine/?comp=goalstate", "POST /machine/?comp=health"}, requests(server)); diff != "" || again != 0 {
			t.Errorf("status %d; requests (-want +got):\n%s", again, diff)
		}
	})
}
