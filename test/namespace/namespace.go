// Package namespace is test support: a process in network and mount namespaces of its own, which look like a virtual
// machine on Azure to the one program that runs there.
package namespace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Command is this executable, started once more under a name in new namespaces, where it calls SetUp. It is
// killed when the context ends, or the thread that started it. Its environment has only PATH.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{name}, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	return cmd
}

// SetUp gives this process an empty /run, a kernel command line, and no pool of Hyper-V's.
func SetUp(cmdline string) error {
	syscall.Umask(0o022)
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("run", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	for _, dir := range []string{"/run/dbus", "/run/systemd/journal"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := Cmdline(cmdline); err != nil {
		return err
	}
	const pool = "/var/lib/hyperv"
	if _, err := os.Stat(pool); err == nil {
		return syscall.Mount("hyperv", pool, "tmpfs", 0, "")
	}
	return nil
}

// Cmdline makes up the kernel command line, in the place of the one that was.
func Cmdline(s string) error {
	const file = "/run/cmdline"
	if err := os.WriteFile(file, []byte(s+"\n"), 0o444); err != nil {
		return err
	}
	if err := syscall.Mount(file, "/proc/cmdline", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount /proc/cmdline: %w", err)
	}
	return nil
}

// Thread moves the thread of a test into a new network namespace, and runs commands of ip(8) there. Both end with the test.
// Where there can be no namespace the test is skipped, and fails if CI is set.
func Thread(t testing.TB, commands ...string) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must have ip (apt-get install iproute2) and run this as root")
		}
		t.Skip("only root can make a network namespace, and ip has to be there")
	}
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := errors.Join(syscall.Unshare(syscall.CLONE_NEWNET), IP(commands...)); err != nil {
		t.Fatal(err)
	}
}

// IP runs commands of ip(8).
func IP(commands ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
