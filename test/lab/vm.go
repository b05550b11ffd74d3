package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
)

// VMConfig says what is particular about a virtual machine. Of [Config], Suite, Cmdline, AssetTag, Lease, the settings of
// NetworkManager, Product and Files count; the one NIC is eth0.
type VMConfig struct {
	Config
	Packages []string          // more packages of Debian's in the tree
	Copies   map[string]string // files of the host, and where they are copied to
	Setup    string            // a script of bash that runs in the root before the first boot
	// Kernel and Initrd are files of the host, or [VMRoot] and a file of the guest. Empty: Debian 12's kernel, and an initrd
	// that only mounts the disk.
	Kernel, Initrd string
}

// VM is a guest with a kernel and firmware tables of its own, in QEMU without hardware virtualization, and the real
// systemd. QEMU and the disk are in the namespaces of the cloud, and end with them.
type VM struct {
	Cloud *Cloud
	files
	config VMConfig
	agents net.Listener
	agent  *rpc.Client // of this boot; nil before
}

// Where the cloud's machine has the files of a VM: a tmpfs over a directory that every host has and nothing needs.
const (
	vmDir    = "/mnt"
	VMRoot   = vmDir + "/root" // the root file system, until Start makes a disk of it
	vmDisk   = vmDir + "/disk.img"
	vmInitrd = vmDir + "/initrd"
	vmAgent  = vmDir + "/agent"
	vmLog    = vmDir + "/console.log"
)

// bootLimit is for a virtual machine without hardware virtualization while the host is busy.
const bootLimit = 10 * time.Minute

// NewVM makes the root file system of a virtual machine, and its cloud. Start boots it.
func NewVM(ctx context.Context, c VMConfig) (*VM, error) {
	if err := static(); err != nil {
		return nil, err
	}
	c.Config = c.withDefaults()
	tree, err := Tree(ctx, c.Suite, c.Packages...)
	if err != nil {
		return nil, err
	}
	cloud, err := startCloud(ctx)
	if err != nil {
		return nil, err
	}
	v := &VM{Cloud: cloud, config: c, files: files{ownKernel: true}}
	if err := v.prepare(ctx, tree); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// prepareRoot mounts a writable overlay over the tree. Nothing else of the host's files can be changed from here.
const prepareRoot = `set -e
mount -o remount,bind,ro /
mount -t proc proc /proc
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t tmpfs -o mode=755 lab ` + vmDir + `
mkdir ` + vmDir + `/upper ` + vmDir + `/work ` + VMRoot + `
mount -t overlay -o lowerdir="$1",upperdir=` + vmDir + `/upper,workdir=` + vmDir + `/work lab ` + VMRoot

// prepareGuest adds the agent's unit, and removes what would wait on a console or is the distribution's own business.
const prepareGuest = `echo guest >/etc/hostname
echo 127.0.0.1 localhost guest >/etc/hosts
: >/etc/machine-id
: >/etc/fstab
ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
(
	cd /etc/systemd/system
	rm -rf timers.target.wants /var/lib/dbus/machine-id
	mkdir -p multi-user.target.wants
	printf '[Service]\nExecStart=/usr/local/sbin/` + roleAgent + `\n' >` + roleAgent + `.service
	ln -s ../` + roleAgent + `.service multi-user.target.wants/
	for unit in systemd-firstboot.service console-getty.service getty.target; do ln -sf /dev/null $unit; done
)
`

func (v *VM) prepare(ctx context.Context, tree string) error {
	if _, err := v.Cloud.Run(ctx, "sh", "-c", prepareRoot, "sh", tree); err != nil {
		return err
	}
	v.Cloud.SetLease("", *v.config.Lease)
	var err error
	if v.root, err = v.Cloud.openFiles(VMRoot); err != nil {
		return err
	}
	err = errors.Join(v.furnish(v.config.Config), v.copyIn("/proc/self/exe", "/usr/local/sbin/"+roleAgent, 0o755))
	for from, to := range v.config.Copies {
		err = errors.Join(err, v.copyIn(from, to, 0o644))
	}
	if err != nil {
		return err
	}
	_, err = v.Chroot(ctx, prepareGuest+v.config.Setup)
	return err
}

// Chroot runs a script of bash in the root file system. It counts before Start only.
func (v *VM) Chroot(ctx context.Context, script string) (string, error) {
	return v.Cloud.Run(ctx, "chroot", VMRoot, "bash", "-ec", script)
}

// Start makes a disk of the root and starts QEMU. The kernel's own reboot would take a minute there; QEMU started again
// takes a second.
func (v *VM) Start(ctx context.Context) error {
	kernel, initrd, err := v.kernel(ctx)
	if err != nil {
		return err
	}
	if err := v.Cloud.ip(ctx, "tuntap add eth0 mode tap", "link set eth0 master br0 up"); err != nil {
		return err
	}
	_, err = v.Cloud.Run(ctx, "sh", "-c", `truncate -s 2G "$1" &&
		mke2fs -q -t ext4 -O ^has_journal -E root_owner=0:0 -d "$2" "$1"`, "sh", vmDisk, VMRoot)
	if err != nil {
		return err
	}
	if v.agents, err = net.Listen("unix", v.hostPath(vmAgent)); err != nil {
		return fmt.Errorf("lab: agent of the virtual machine: %w", err)
	}
	loop := `exec >>` + vmLog + ` 2>&1; while "$@" </dev/null; do :; done`
	cmd := exec.Command("/bin/sh", append([]string{"-c", loop, "sh"}, v.qemu(kernel, initrd)...)...)
	cmd.Env = smallEnv()
	if err := v.Cloud.in(all, cmd.Start); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it ends with the cloud
	return nil
}

// WaitBooted waits until the guest has booted, or booted again, and its network is online.
func (v *VM) WaitBooted(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nconsole:\n%s", err, v.Console())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = v.agents.Close() })()
	conn, err := v.agents.Accept() // QEMU connects when it starts
	if err != nil {
		return fmt.Errorf("lab: virtual machine: %w", cmp.Or(context.Cause(ctx), err))
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	hello := make([]byte, len(inside.AgentHello))
	if _, err := io.ReadFull(conn, hello); err != nil || string(hello) != inside.AgentHello {
		return fmt.Errorf("lab: agent of the virtual machine says %q: %w", hello, errors.Join(context.Cause(ctx), err))
	}
	v.agent = rpc.NewClient(conn)
	_, err = v.Run(ctx, "sh", "-c", "systemctl is-system-running --wait; exec systemctl start network-online.target")
	return err
}

// Run runs a command in the guest and returns what it printed on standard output, without the last newline. The error of
// a command that fails ends with what it printed on standard error.
func (v *VM) Run(ctx context.Context, name string, args ...string) (string, error) {
	if v.agent == nil {
		return "", errors.New("lab: the virtual machine has not booted")
	}
	var done inside.Done
	argv := append([]string{name}, args...)
	select {
	case call := <-v.agent.Go("Agent.Run", inside.Command{Argv: argv, Env: smallEnv()}, &done, nil).Done:
		if call.Error != nil {
			return "", fmt.Errorf("lab: agent: %w", call.Error)
		}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	out := strings.TrimSuffix(done.Stdout, "\n")
	if done.Err != "" {
		return out, fmt.Errorf("lab: %s: %s: %s", strings.Join(argv, " "), done.Err, strings.TrimSpace(done.Stderr))
	}
	return out, nil
}

// Reboot boots the guest again.
func (v *VM) Reboot(ctx context.Context) error {
	agent := v.agent
	_, err := v.Run(ctx, "systemctl", "--no-block", "reboot")
	if err != nil && !errors.Is(err, rpc.ErrShutdown) { // the agent may be ended before it has answered
		return err
	}
	err = v.WaitBooted(ctx)
	_ = agent.Close()
	return err
}

// Console is what was written to the guest's console.
func (v *VM) Console() string {
	b, _ := os.ReadFile(v.hostPath(vmLog))
	return string(b)
}

// static reports whether this executable runs in an initrd.
func static() error {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "CGO_ENABLED" && s.Value == "1" {
				return errors.New("lab: a virtual machine runs this program in its initrd: build it with CGO_ENABLED=0")
			}
		}
	}
	return nil
}

// Close ends the guest and its cloud.
func (v *VM) Close() error {
	if v.agents != nil {
		_ = v.agents.Close()
	}
	if v.root != nil {
		_ = v.root.Close()
	}
	v.Cloud.close()
	return nil
}

// hostPath is where the host sees a file of the cloud's machine.
func (v *VM) hostPath(name string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", v.Cloud.PID()), name)
}
