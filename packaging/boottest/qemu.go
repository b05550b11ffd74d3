package boottest

import "context"

// startQEMU makes a disk of the guest's root and starts a virtual machine on it, without hardware virtualization. The
// kernel's own reboot would take a minute so; QEMU started anew takes a second.
func startQEMU(ctx context.Context, w *world, c Config) error {
	dir, err := kernel(ctx)
	if err != nil {
		return err
	}
	if err := initrd(w.path("initrd"), dir); err != nil {
		return err
	}
	const disk = scratch + "/disk.img"
	for _, argv := range [][]string{
		{"truncate", "-s", "2G", disk},
		{"mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0", "-d", scratch + "/root", disk},
		{"ip", "tuntap", "add", "nic", "mode", "tap"},
		{"ip", "link", "set", "nic", "master", "br0", "up"},
	} {
		if err := w.run(ctx, argv...); err != nil {
			return err
		}
	}
	argv := []string{
		"sh", "-c", `while "$@" </dev/null; do rm -f ` + scratch + `/shared/agent; done`, "sh",
		"qemu-system-x86_64", "-machine", "q35,accel=tcg,usb=off,vmport=off", "-cpu", "qemu64", "-smp", "2", "-m", "1024",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", dir + "/vmlinuz", "-initrd", scratch + "/initrd",
		"-append", "console=ttyS0 net.ifnames=0 mitigations=off nokaslr no_timer_check random.trust_cpu=on " + c.Cmdline,
		"-drive", "file=" + disk + ",if=none,id=disk,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=disk",
		"-netdev", "tap,id=nic,ifname=nic,script=no,downscript=no",
		"-device", "virtio-net-pci,netdev=nic,mac=00:0d:3a:11:22:33,romfile=",
		"-device", "virtio-serial-pci", "-chardev", "socket,id=agent,server=on,wait=off,path=" + scratch + "/shared/agent",
		"-device", "virtserialport,chardev=agent,name=boottest",
		"-chardev", "file,id=console,append=on,path=" + scratch + "/console.log", "-serial", "chardev:console",
		"-smbios", "type=1,manufacturer=Microsoft Corporation,product=Virtual Machine",
	}
	if c.AssetTag != "" {
		argv = append(argv, "-smbios", "type=3,manufacturer=Microsoft Corporation,asset="+c.AssetTag)
	}
	qemu := w.command(context.WithoutCancel(ctx), argv...)
	if err := startLogged(w, qemu); err != nil {
		return err
	}
	go func() { _ = qemu.Wait() }() // it ends with the world
	return nil
}
