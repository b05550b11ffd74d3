package lab

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The kernel is Debian 12's for virtual machines, whatever the guest is. ext4, packet sockets and DMI are built in.
const kernelPackage, kernelSuite = "linux-image-cloud-amd64", "bookworm"

// modules are those that the guest needs, each behind those that it needs itself.
var modules = []string{
	"drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_pci_legacy_dev",
	"drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci", "drivers/block/virtio_blk",
	"drivers/block/loop", "fs/overlayfs/overlay", "fs/squashfs/squashfs",
	"net/core/failover", "drivers/net/net_failover", "drivers/net/virtio_net", "drivers/char/virtio_console",
}

// pickKernel leaves of a Debian tree the kernel, and the modules in the order in which they are loaded.
const pickKernel = `mkdir modules
mv tree/boot/vmlinuz-* vmlinuz
i=10
for m; do
	mv tree/lib/modules/*/kernel/$m.ko modules/$i.ko
	i=$((i+1))
done
rm -r tree`

// kernel gives a directory with the kernel "vmlinuz" and its modules, and makes it if it is not there.
func kernel(ctx context.Context) (string, error) {
	version := sha256.Sum256([]byte(pickKernel + strings.Join(modules, " ")))
	return cached(fmt.Sprintf("kernel-%x", version[:5]), func(dir string) error {
		tree := filepath.Join(dir, "tree")
		if err := os.MkdirAll(tree, 0o755); err != nil {
			return err
		}
		if err := debootstrap(ctx, kernelSuite, tree, "--variant=extract", "--include="+kernelPackage); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "sh", append([]string{"-ec", pickKernel, "sh"}, modules...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("lab: kernel: %w: %s", err, out)
		}
		return nil
	})
}

// makeInitrd makes an initrd of the modules, directories to mount on, and as its init this executable, which is the cloud's
// PID 1.
const makeInitrd = `mkdir ` + vmDir + `/files
cd ` + vmDir + `/files
mkdir dev proc sys root
cp -r "$1/modules" .
cp /proc/1/exe ` + roleInitrd + `
find . | cpio --quiet -o -H newc >` + vmInitrd
