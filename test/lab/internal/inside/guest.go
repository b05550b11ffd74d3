// Package inside is what this executable does as PID 1 of a lab's machines: it makes the guest's root, reaps processes, and
// ends when the program does that started it. In a virtual machine it is PID 1 of the initrd, and runs commands.
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
)

// Ready is what PID 1 prints when the machine is made.
const Ready = "ready\n"

// GuestSpec is what PID 1 of the guest must know to make its root.
type GuestSpec struct {
	Tree            string // lower layer of the root
	Cmdline, BootID string // of the kernel
	AssetTag        string // DMI chassis asset tag; empty: the machine has no DMI
	Systemd         bool
}

// Boot is a program that PID 1 becomes. What it prints goes to a file.
type Boot struct {
	Argv, Env []string
	Log       string
}

// Main is the main function of PID 1. It makes the root that the specification in JSON is of, none for null, and then waits
// for a [Boot] at standard input.
func Main(spec string) error {
	runtime.LockOSThread()      // the process's first thread, in whose namespaces others are started
	signal.Ignore(unix.SIGCHLD) // the kernel reaps the orphans
	var s *GuestSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	// The cgroup namespace is not made with the others: there the cgroup of the parent process would be its root.
	// Nothing that is mounted here shall be seen by the host.
	err := errors.Join(unix.Unshare(unix.CLONE_NEWCGROUP), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	if err == nil && s != nil {
		err = makeRoot(*s)
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, Ready); err != nil {
		return err
	}
	var b Boot
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		return nil // the program that started it has ended
	}
	log, err := os.OpenFile(b.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	signal.Reset(unix.SIGCHLD)
	for fd := 1; fd <= 2; fd++ {
		if err := unix.Dup2(int(log.Fd()), fd); err != nil {
			return err
		}
	}
	return unix.Exec(b.Argv[0], b.Argv, b.Env)
}

// makeRoot builds the root file system and enters it.
func makeRoot(s GuestSpec) error {
	root, err := mountRoot(s.Tree)
	if err != nil {
		return err
	}
	m := &mounter{root: root}
	mountKernel(m, s.Systemd)
	mountDMI(m, s.AssetTag)
	identify(m, s)
	if m.err != nil {
		return m.err
	}
	return pivot(root)
}

// identify gives the machine its names, and the two files of /proc that say how and when it was booted.
func identify(m *mounter, s GuestSpec) {
	m.mkdir("/run/dbus", "/run/lock", "/run/systemd")
	m.write("/etc/hostname", "guest\n")
	m.write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 guest\n")
	m.write("/etc/machine-id", "6e6d617a757265646973706174636800\n")
	m.write("/lab/cmdline", s.Cmdline+"\n")
	m.write("/lab/boot_id", s.BootID+"\n")
	m.bind(m.root+"/lab/cmdline", "/proc/cmdline")
	m.bind(m.root+"/lab/boot_id", "/proc/sys/kernel/random/boot_id")
	if err := unix.Sethostname([]byte("guest")); m.err == nil && err != nil {
		m.err = fmt.Errorf("host name: %w", err)
	}
}
