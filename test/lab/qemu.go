package lab

import (
	"context"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
)

// kernel gives the files of the kernel and the initrd, as the cloud's machine sees them.
func (v *VM) kernel(ctx context.Context) (kernelFile, initrdFile string, err error) {
	kernelFile, initrdFile = v.config.Kernel, v.config.Initrd
	if kernelFile != "" && initrdFile != "" {
		return kernelFile, initrdFile, nil
	}
	dir, err := kernel(ctx)
	if err != nil {
		return "", "", err
	}
	_, err = v.Cloud.Run(ctx, "sh", "-ec", makeInitrd, "sh", dir)
	return dir + "/vmlinuz", vmInitrd, err
}

// qemu is the command of the virtual machine. One thread runs both of its CPUs: with a thread for each, QEMU 7.2 crashes if
// one CPU changes the memory map, as the kernel does when it looks for PCI devices, while the other takes an interrupt.
func (v *VM) qemu(kernel, initrd string) []string {
	argv := []string{
		"qemu-system-x86_64", "-machine", "q35,usb=off,vmport=off", "-accel", "tcg,thread=single",
		"-cpu", "qemu64", "-smp", "2", "-m", "1024",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", kernel, "-initrd", initrd,
		"-append", "console=ttyS0 net.ifnames=0 mitigations=off nokaslr no_timer_check random.trust_cpu=on " + v.config.Cmdline,
		"-drive", "file=" + vmDisk + ",if=none,id=disk,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=disk",
		"-netdev", "tap,id=nic,ifname=eth0,script=no,downscript=no",
		"-device", "virtio-net-pci,netdev=nic,mac=" + MAC("eth0") + ",romfile=",
		"-device", "virtio-serial-pci", "-chardev", "socket,id=agent,path=" + vmAgent,
		"-device", "virtserialport,chardev=agent,name=" + inside.AgentPortName,
		"-serial", "stdio",
		"-smbios", "type=1,manufacturer=Microsoft Corporation,product=Virtual Machine",
	}
	if v.config.AssetTag != "" {
		argv = append(argv, "-smbios", "type=3,manufacturer=Microsoft Corporation,asset="+v.config.AssetTag)
	}
	return argv
}
