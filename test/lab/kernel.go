package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// kernel gives a directory with the kernel "vmlinuz" and its modules, and makes it if it is not there.
func kernel(ctx context.Context) (string, error) {
	version := sha256.Sum256([]byte(strings.Join(modules, " ")))
	return Cached(fmt.Sprintf("kernel-%x", version[:5]), func(unfinished string) error {
		all := filepath.Join(unfinished, "tree")
		if err := os.MkdirAll(filepath.Join(unfinished, "modules"), 0o755); err != nil {
			return err
		}
		if err := Debootstrap(ctx, kernelSuite, all, "--variant=extract", "--include="+kernelPackage); err != nil {
			return err
		}
		moves := map[string]string{"boot/vmlinuz-*": "vmlinuz"}
		for i, m := range modules {
			moves["lib/modules/*/kernel/"+m+".ko"] = fmt.Sprintf("modules/%02d.ko", i)
		}
		for from, to := range moves {
			found, err := filepath.Glob(filepath.Join(all, from))
			if err != nil || len(found) != 1 {
				return fmt.Errorf("kernel: %d files are %s: %w", len(found), from, errors.Join(err, fs.ErrNotExist))
			}
			if err := os.Rename(found[0], filepath.Join(unfinished, to)); err != nil {
				return err
			}
		}
		return os.RemoveAll(all)
	})
}

// initrd makes an initrd at the path: this executable as its init, the modules, and directories to mount on.
func initrd(path, kernelDir string) error {
	entries := []entry{
		{name: "dev"}, {name: "proc"}, {name: "sys"}, {name: "root"}, {name: "modules"}, {name: roleInitrd, from: "/proc/self/exe"},
	}
	for i := range modules {
		name := fmt.Sprintf("modules/%02d.ko", i)
		entries = append(entries, entry{name: name, from: filepath.Join(kernelDir, name)})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for i, e := range append(entries, entry{name: "TRAILER!!!"}) {
		if err := e.write(f, i+1); err != nil {
			return err
		}
	}
	return f.Close()
}

// entry is a file of a cpio archive, or a directory.
type entry struct{ name, from string }

// write writes the entry in the form that the kernel reads: Documentation/driver-api/early-userspace/buffer-format.rst.
func (e entry) write(f *os.File, inode int) error {
	mode, data := 0o040755, []byte(nil)
	if e.from != "" {
		var err error
		if data, err = os.ReadFile(e.from); err != nil {
			return err
		}
		mode = 0o100755
	}
	header := "070701"
	for _, n := range []int{inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(e.name) + 1, 0} {
		header += fmt.Sprintf("%08x", n)
	}
	header += e.name + "\x00"
	_, err := f.WriteString(header + padding(len(header)) + string(data) + padding(len(data)))
	return err
}

// padding fills up to a multiple of four bytes.
func padding(n int) string { return strings.Repeat("\x00", (4-n%4)%4) }
