package vhd

import (
	"bytes"
	"fmt"
)

// A format is a kind of file that is told by its first bytes.
type format struct {
	magic  string
	what   string // with its article
	driver string // what qemu-img calls it; empty for compressed files
	tool   string // decompresses it
}

// sniff returns what a file is that begins with head.
func sniff(head []byte) (format, bool) {
	for _, f := range []format{
		{magic: cookie, what: "a dynamic VHD", driver: "vpc"},
		{magic: "vhdxfile", what: "a VHDX", driver: "vhdx"},
		{magic: "QFI\xfb", what: "a qcow2 image", driver: "qcow2"},
		{magic: "KDMV", what: "a VMDK", driver: "vmdk"},
		{magic: "\xfd7zXZ\x00", what: "an xz archive", tool: "xz"},
		{magic: "\x1f\x8b", what: "a gzip archive", tool: "gzip"},
		{magic: "\x28\xb5\x2f\xfd", what: "a zstd archive", tool: "zstd"},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f, true
		}
	}
	return format{}, false
}

// mend makes a VHD of a file in the format.
func (f format) mend(name string) string {
	if f.tool != "" {
		return fmt.Sprintf("%s -dc %s > %s", f.tool, file(name), file(sibling(name, ".vhd")))
	}
	return fmt.Sprintf("qemu-img convert -f %s -O vpc -o subformat=fixed,force_size %s %s",
		f.driver, file(name), file(sibling(name, ".fixed.vhd")))
}

// unwrap makes a VHD of a file in the format that was given a footer as if it
// were a raw disk, and that has size bytes without the footer.
func (f format) unwrap(name string, size int64) string {
	if f.tool != "" {
		return fmt.Sprintf("head -c %d %s | %s -dc > %s", size, file(name), f.tool, file(sibling(name, ".fixed.vhd")))
	}
	source := fmt.Sprintf("driver=%s,file.driver=raw,file.size=%d,file.file.filename=%s", f.driver, size/512*512, option(name))
	return fmt.Sprintf("qemu-img convert --image-opts -O vpc -o subformat=fixed,force_size %s %s",
		quote(source), file(sibling(name, ".fixed.vhd")))
}
