// Package inside is what this executable does as PID 1 of a lab's machines: it makes the guest's root, reaps processes, and
// ends when the program does that started it. In a virtual machine it is PID 1 of the initrd, and runs commands.
package inside

import (
	"encoding/json"
	"fmt"
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

// Main is the main function of PID 1. It makes the root that the specification in JSON is of, none for null. Once there is a
// byte at standard input it becomes systemd, and when that ends before, so does the machine.
func Main(spec string) error {
	runtime.LockOSThread()      // the process's first thread, in whose namespaces others are started
	signal.Ignore(unix.SIGCHLD) // the kernel reaps the orphans
	var s *GuestSpec
	check(json.Unmarshal([]byte(spec), &s))
	// The cgroup namespace is not made with the others: there the cgroup of the parent process would be its root.
	check(unix.Unshare(unix.CLONE_NEWCGROUP))
	// Nothing that is mounted here shall be seen by the host.
	check(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	if s != nil {
		makeRoot(*s)
	}
	fmt.Print(Ready)
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return nil // the program that started it has ended
	}
	log, err := os.OpenFile("/lab/systemd.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	check(err)
	for fd := 1; fd <= 2; fd++ {
		check(unix.Dup2(int(log.Fd()), fd))
	}
	signal.Reset(unix.SIGCHLD)
	// In a container systemd has its kernel command line from this variable.
	env := append(os.Environ(), "container=lab", "SYSTEMD_PROC_CMDLINE="+s.Cmdline)
	const systemd = "/lib/systemd/systemd"
	return unix.Exec(systemd, []string{systemd, "--log-target=journal", "--show-status=0"}, env)
}

// makeRoot builds the root file system and enters it.
func makeRoot(s GuestSpec) {
	r := mountRoot(s.Tree)
	r.mountKernel(s.Systemd)
	r.mountDMI(s.AssetTag)
	r.identify(s)
	r.enter()
}

// identify gives the machine its names, and the two files of /proc that say how and when it was booted.
func (r root) identify(s GuestSpec) {
	r.mkdir("/run/dbus", "/run/lock", "/run/systemd")
	r.write("/etc/hostname", "guest\n")
	r.write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 guest\n")
	r.write("/etc/machine-id", "6e6d617a757265646973706174636800\n")
	r.write("/lab/cmdline", s.Cmdline+"\n")
	r.write("/lab/boot_id", s.BootID+"\n")
	r.bind(string(r)+"/lab/cmdline", "/proc/cmdline")
	r.bind(string(r)+"/lab/boot_id", "/proc/sys/kernel/random/boot_id")
	check(unix.Sethostname([]byte("guest")))
}
