package inside

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// GuestSpec is what PID 1 of the guest must know to make its root.
type GuestSpec struct {
	Tree            string // lower layer of the root
	Cmdline, BootID string // of the kernel
	AssetTag        string // DMI chassis asset tag; empty: the machine has no DMI
	Udev, Systemd   bool
}

// Guest is the service that makes a process the guest's PID 1.
type Guest struct{ calls FirstThread }

// GuestMain is the main function of the guest's PID 1.
func GuestMain() error {
	calls := make(FirstThread)
	return Serve(map[string]any{"Guest": &Guest{calls}, "Procs": newProcs()}, calls)
}

// MakeRoot builds the root file system and enters it.
func (g *Guest) MakeRoot(s GuestSpec, _ *None) error {
	return g.calls.do(func() error {
		if s.Systemd {
			// Not at the start: there the cgroup of the parent process would be its root.
			if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
				return fmt.Errorf("cgroup namespace: %w", err)
			}
		}
		root, err := mountRoot(s.Tree)
		if err != nil {
			return err
		}
		m := &mounter{root: root}
		mountKernel(m, s.Udev, s.Systemd)
		mountDMI(m, s.AssetTag)
		identify(m, s)
		if m.err != nil {
			return m.err
		}
		return pivot(root)
	})
}

// Boot makes PID 1 another program. It returns only if that fails.
func (g *Guest) Boot(c Command, _ *None) error {
	return g.calls.do(func() error {
		log, err := openLog(c.Name)
		if err != nil {
			return err
		}
		for fd := 1; fd <= 2; fd++ {
			if err := unix.Dup2(int(log.Fd()), fd); err != nil {
				return err
			}
		}
		return unix.Exec(c.Argv[0], c.Argv, c.Env)
	})
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
	if m.err == nil {
		m.err = unix.Sethostname([]byte("guest"))
	}
	if m.err == nil {
		m.err = raiseLoopback()
	}
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
