package vhd

import (
	"fmt"
	"strings"
)

// A format is a kind of file that is recognized by its first bytes.
type format struct {
	at     int // where the magic is
	magic  string
	what   string // with its article
	driver string // what qemu-img calls it; empty if it is none of its formats
	tool   string // unpacks it: to standard output, or the command to do so
}

// sniff returns what a file is that begins with head.
func sniff(head []byte) (format, bool) {
	for _, f := range []format{
		{magic: cookie, what: "a dynamic VHD", driver: "vpc"},
		{magic: "vhdxfile", what: "a VHDX", driver: "vhdx"},
		{magic: "QFI\xfb\x00\x00\x00\x01", what: "a qcow image", driver: "qcow"},
		{magic: "QFI\xfb", what: "a qcow2 image", driver: "qcow2"},
		{magic: "QED\x00", what: "a QED image", driver: "qed"},
		{magic: "KDMV", what: "a VMDK", driver: "vmdk"},
		{magic: "COWD", what: "a VMDK", driver: "vmdk"},
		{magic: descriptor, what: "the descriptor of a VMDK", driver: "vmdk"},
		{at: 64, magic: "\x7f\x10\xda\xbe", what: "a VDI", driver: "vdi"},
		{magic: "WithoutFreeSpace", what: "a Parallels image", driver: "parallels"},
		{magic: "WithouFreSpacExt", what: "a Parallels image", driver: "parallels"},
		{magic: "\xfd7zXZ\x00", what: "an xz archive", tool: "xz -dc"},
		{magic: "\x1f\x8b\x08", what: "a gzip archive", tool: "gzip -dc"},
		{magic: "\x28\xb5\x2f\xfd", what: "a zstd archive", tool: "zstd -dc"},
		{at: 4, magic: "1AY&SY", what: "a bzip2 archive", tool: "bzip2 -dc"},
		{magic: "PK\x03\x04", what: "a zip archive", tool: "unzip"},
		{at: 257, magic: "ustar", what: "a tar archive", tool: "tar -xf"},
		{at: 32769, magic: "CD001", what: "an ISO image"},
	} {
		if len(head) >= f.at && strings.HasPrefix(string(head[f.at:]), f.magic) {
			return f, true
		}
	}
	return format{}, false
}

// descriptor begins the text that names the files of a VMDK.
const descriptor = "# Disk DescriptorFile"

// fix makes a VHD of a file in the format.
func (f format) fix(name string) string {
	switch {
	case f.driver != "":
		return fmt.Sprintf("qemu-img convert -f %s -O vpc -o subformat=fixed,force_size %s %s",
			f.driver, file(name), file(sibling(name, ".fixed.vhd")))
	case strings.HasSuffix(f.tool, " -dc"):
		return fmt.Sprintf("%s %s > %s", f.tool, file(name), file(sibling(name, ".vhd")))
	case f.tool != "":
		return fmt.Sprintf("%s %s\nthen verify the disk that was in it", f.tool, file(name))
	}
	return "get the disk image for Azure: an ISO is a medium to install from"
}

// unwrap makes a VHD of a file in the format that was given a footer as if it
// were a raw disk, and that has size bytes without the footer.
func (f format) unwrap(name string, size int64) string {
	switch {
	case f.tool == "xz -dc" || f.tool == "gzip -dc": // the others take padding for damage
		return fmt.Sprintf("head -c %d %s | %s > %s", size, file(name), f.tool, file(sibling(name, ".fixed.vhd")))
	case f.driver == "" || f.magic == descriptor || size%sector != 0:
		return "convert the original file, as what it is"
	}
	source := fmt.Sprintf("driver=%s,file.driver=raw,file.size=%d,file.file.filename=%s", f.driver, size, option(name))
	return fmt.Sprintf("qemu-img convert --image-opts -O vpc -o subformat=fixed,force_size %s %s",
		quote(source), file(sibling(name, ".fixed.vhd")))
}
