package inside

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// root is the directory where a root file system is put together. What fails ends the machine.
type root string

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func (r root) mount(source, target, fstype string, flags uintptr, data string) {
	if err := unix.Mount(source, string(r)+target, fstype, flags, data); err != nil {
		check(fmt.Errorf("mount %s on %s: %w", fstype, string(r)+target, err))
	}
}

// bind binds a file or directory of the host over the target, which must exist.
func (r root) bind(source, target string) {
	r.mount(source, target, "bind", unix.MS_BIND|unix.MS_REC, "")
}

func (r root) mkdir(dirs ...string) {
	for _, dir := range dirs {
		check(os.MkdirAll(string(r)+dir, 0o755))
	}
}

func (r root) write(name, data string) {
	r.mkdir(filepath.Dir(name))
	check(os.WriteFile(string(r)+name, []byte(data), 0o644))
}

// scratch is a directory that every Linux has and nothing in here needs: the machine hides it under a tmpfs.
const scratch = "/mnt"

// mountRoot makes the guest's root: a tmpfs over the tree.
func mountRoot(tree string) root {
	base := root(scratch)
	base.mount("lab", "", "tmpfs", 0, "mode=755")
	base.mkdir("/upper", "/work", "/root")
	base.mount("lab", "/root", "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%[2]s/upper,workdir=%[2]s/work", tree, scratch))
	return base + "/root"
}

// mountKernel mounts what a booted machine has besides its root.
//
// A read-only /sys makes NetworkManager decide that it is in a container and take links without udev; journald wants
// a cgroup file system to be there, systemd wants to write to it.
func (r root) mountKernel(systemd bool) {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	r.mount("proc", "/proc", "proc", quiet, "")
	r.protectHost()
	r.mount("sysfs", "/sys", "sysfs", quiet|unix.MS_RDONLY, "")
	cgroups := uintptr(quiet)
	if !systemd {
		cgroups |= unix.MS_RDONLY
	}
	r.mount("cgroup2", "/sys/fs/cgroup", "cgroup2", cgroups, "")
	r.mount("run", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
	r.mount("tmp", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	r.mount("dev", "/dev", "tmpfs", unix.MS_NOSUID, "mode=755")
	r.mkdir("/dev/pts", "/dev/shm")
	r.mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	r.mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		r.write("/dev/"+device, "")
		r.bind("/dev/"+device, "/dev/"+device)
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
	} {
		check(os.Symlink(target, string(r)+"/dev/"+name))
	}
}

// protectHost leaves of the kernel's settings only those of the network writable: the others are the host's too.
func (r root) protectHost() {
	r.bind(string(r)+"/proc/sys/net", "/proc/sys/net")
	r.bind(string(r)+"/proc/sys", "/proc/sys") // with net, which stays writable
	r.mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// mountDMI puts a /sys/class of our making over the real one, which may have no dmi class or that of another machine.
func (r root) mountDMI(assetTag string) {
	const aside = "/run/class"
	classes, err := os.ReadDir(string(r) + "/sys/class")
	check(err)
	r.mkdir(aside)
	r.bind(string(r)+"/sys/class", aside)
	r.mount("class", "/sys/class", "tmpfs", 0, "mode=755")
	for _, class := range classes {
		if class.Name() != "dmi" {
			r.mkdir("/sys/class/" + class.Name())
			r.bind(string(r)+aside+"/"+class.Name(), "/sys/class/"+class.Name())
		}
	}
	check(unix.Unmount(string(r)+aside, unix.MNT_DETACH))
	check(os.Remove(string(r) + aside))
	if assetTag != "" {
		r.write("/sys/class/dmi/id/chassis_asset_tag", assetTag+"\n")
	}
}

// enter makes the directory the root and takes the host's files out of sight.
func (r root) enter() {
	check(os.Chdir(string(r)))
	// The old root ends up on top of the new one at the same place; then it is let go.
	check(unix.PivotRoot(".", "."))
	check(unix.Unmount(".", unix.MNT_DETACH))
	check(os.Chdir("/"))
}
