package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mounter puts a root file system together. After the first error it does nothing more.
type mounter struct {
	root string
	err  error
}

func (m *mounter) mount(source, target, fstype string, flags uintptr, data string) {
	if m.err != nil {
		return
	}
	if err := unix.Mount(source, m.root+target, fstype, flags, data); err != nil {
		m.err = fmt.Errorf("mount %s on %s: %w", fstype, m.root+target, err)
	}
}

// bind binds a file or directory of the host over the target, which must exist.
func (m *mounter) bind(source, target string) {
	m.mount(source, target, "bind", unix.MS_BIND|unix.MS_REC, "")
}

func (m *mounter) mkdir(dirs ...string) {
	for _, dir := range dirs {
		if m.err == nil {
			m.err = os.MkdirAll(m.root+dir, 0o755)
		}
	}
}

func (m *mounter) write(name, data string) {
	m.mkdir(filepath.Dir(name))
	if m.err == nil {
		m.err = os.WriteFile(m.root+name, []byte(data), 0o644)
	}
}

func (m *mounter) symlink(target, name string) {
	if m.err == nil {
		m.err = os.Symlink(target, m.root+name)
	}
}

// scratch is a directory that every Linux has and nothing in here needs: the machine hides it under a tmpfs.
const scratch = "/mnt"

// mountRoot makes the guest's root at the returned path: a tmpfs over the tree.
func mountRoot(tree string) (string, error) {
	base := mounter{root: scratch}
	base.mount("lab", "", "tmpfs", 0, "mode=755")
	base.mkdir("/upper", "/work", "/root")
	base.mount("lab", "/root", "overlay", 0,
		fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", tree, scratch, scratch))
	return scratch + "/root", base.err
}

// mountKernel mounts what a booted machine has besides its root.
//
// A read-only /sys makes NetworkManager decide that it is in a container and take links without udev; journald wants
// a cgroup file system to be there, systemd wants to write to it.
func mountKernel(m *mounter, systemd bool) {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	m.mount("proc", "/proc", "proc", quiet, "")
	protectHost(m)
	m.mount("sysfs", "/sys", "sysfs", quiet|unix.MS_RDONLY, "")
	cgroups := uintptr(quiet)
	if !systemd {
		cgroups |= unix.MS_RDONLY
	}
	m.mount("cgroup2", "/sys/fs/cgroup", "cgroup2", cgroups, "")
	m.mount("run", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
	m.mount("tmp", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	m.mount("dev", "/dev", "tmpfs", unix.MS_NOSUID, "mode=755")
	m.mkdir("/dev/pts", "/dev/shm")
	m.mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	m.mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		m.write("/dev/"+device, "")
		m.bind("/dev/"+device, "/dev/"+device)
	}
	m.symlink("pts/ptmx", "/dev/ptmx")
	m.symlink("/proc/self/fd", "/dev/fd")
	m.symlink("/proc/self/fd/0", "/dev/stdin")
	m.symlink("/proc/self/fd/1", "/dev/stdout")
	m.symlink("/proc/self/fd/2", "/dev/stderr")
}

// protectHost leaves of the kernel's settings only those of the network writable: the others are the host's too.
func protectHost(m *mounter) {
	m.bind(m.root+"/proc/sys/net", "/proc/sys/net")
	m.bind(m.root+"/proc/sys", "/proc/sys") // with net, which stays writable
	m.mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// mountDMI puts a /sys/class of our making over the real one, which may have no dmi class or that of another machine.
func mountDMI(m *mounter, assetTag string) {
	if m.err != nil {
		return
	}
	classes, err := os.ReadDir(m.root + "/sys/class")
	if err != nil {
		m.err = err
		return
	}
	m.mkdir("/run/class")
	m.bind(m.root+"/sys/class", "/run/class")
	m.mount("class", "/sys/class", "tmpfs", 0, "mode=755")
	for _, class := range classes {
		if class.Name() == "dmi" {
			continue
		}
		m.mkdir("/sys/class/" + class.Name())
		m.bind(m.root+"/run/class/"+class.Name(), "/sys/class/"+class.Name())
	}
	if m.err == nil {
		m.err = errors.Join(unix.Unmount(m.root+"/run/class", unix.MNT_DETACH), os.Remove(m.root+"/run/class"))
	}
	if assetTag != "" {
		m.write("/sys/class/dmi/id/chassis_asset_tag", assetTag+"\n")
	}
}

// pivot makes the directory the root and takes the host's files out of sight.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root ends up on top of the new one at the same place; then it is let go.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the old root: %w", err)
	}
	return os.Chdir("/")
}
