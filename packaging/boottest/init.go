package boottest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const systemd = "/lib/systemd/systemd"

// containerInit gives a container its own kernel command line and DMI data, then becomes systemd. In a container
// systemd takes its arguments for the command line.
func containerInit() error {
	cmdline, err := os.ReadFile("/boottest/cmdline")
	if err != nil {
		return err
	}
	tag, err := os.ReadFile("/boottest/asset_tag")
	if err != nil {
		return err
	}
	err = errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("/boottest/cmdline", "/proc/cmdline", "", unix.MS_BIND, ""),
		mountDMI(string(tag)),
	)
	if err != nil {
		return err
	}
	return unix.Exec(systemd, append([]string{systemd}, strings.Fields(string(cmdline))...), os.Environ())
}

// mountDMI mounts a /sys/class of our own over the real one: in it are the real classes, but for that of DMI.
func mountDMI(tag string) error {
	const class, real = "/sys/class", "/run/class"
	if err := errors.Join(os.Mkdir(real, 0o755), unix.Mount(class, real, "", unix.MS_BIND, ""),
		unix.Mount("class", class, "tmpfs", 0, "mode=755")); err != nil {
		return fmt.Errorf("DMI: %w", err)
	}
	names, err := os.ReadDir(real)
	for _, name := range names {
		if name.Name() != "dmi" {
			to := filepath.Join(class, name.Name())
			err = errors.Join(err, os.Mkdir(to, 0o755), unix.Mount(filepath.Join(real, name.Name()), to, "", unix.MS_BIND, ""))
		}
	}
	if tag != "" {
		id := class + "/dmi/id"
		err = errors.Join(err, os.MkdirAll(id, 0o755), os.WriteFile(id+"/chassis_asset_tag", []byte(tag), 0o444))
	}
	return errors.Join(err, unix.Unmount(real, 0), os.Remove(real))
}

// initrdInit loads the modules in the initrd, mounts the disk and becomes its systemd.
func initrdInit() error {
	for dir, fs := range map[string]string{"/dev": "devtmpfs", "/proc": "proc", "/sys": "sysfs"} {
		if err := unix.Mount(fs, dir, fs, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	modules, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return err
	}
	slices.Sort(modules)
	for _, m := range modules {
		f, err := os.Open(m)
		if err != nil {
			return err
		}
		if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		f.Close()
	}
	for range 500 { // the disk shows up a little after its driver
		if err = unix.Mount("/dev/vda", "/root", "ext4", unix.MS_NOATIME, ""); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("mount the disk: %w", err)
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		err = errors.Join(err, unix.Mount(dir, "/root"+dir, "", unix.MS_MOVE, ""))
	}
	err = errors.Join(err, os.Chdir("/root"), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/"))
	if err != nil {
		return err
	}
	return unix.Exec(systemd, []string{systemd}, nil)
}
