package vhd_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/vhd"
)

const mib = 1 << 20

// footer makes a right footer for a disk of that size, and lets change spoil
// it before the checksum is made.
func footer(size uint64, change func(b []byte)) []byte {
	b := make([]byte, 512)
	copy(b, "conectix")
	binary.BigEndian.PutUint32(b[8:], 2)
	binary.BigEndian.PutUint32(b[12:], 0x00010000)
	binary.BigEndian.PutUint64(b[16:], 1<<64-1)
	copy(b[28:], "test")
	binary.BigEndian.PutUint64(b[40:], size)
	binary.BigEndian.PutUint64(b[48:], size)
	binary.BigEndian.PutUint32(b[60:], 2)
	if change != nil {
		change(b)
	}
	sum := uint32(0)
	for _, c := range b {
		sum += uint32(c)
	}
	binary.BigEndian.PutUint32(b[64:], ^sum)
	return b
}

// A sparse file has content at its start and at its end, and zeros between.
// It counts what is read.
type sparse struct {
	head, tail []byte
	size       int64
	read       int64
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), max(0, s.size-off)))
	s.read += int64(n)
	clear(p[:n])
	if off < int64(len(s.head)) {
		copy(p[:n], s.head[off:])
	}
	if at := s.size - int64(len(s.tail)) - off; at >= 0 && at < int64(n) {
		copy(p[at:n], s.tail)
	} else if at < 0 && n > 0 {
		copy(p[:n], s.tail[-at:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// disk is a fixed VHD of a disk with a partition table that fits its size.
func disk(size uint64, change func(b []byte)) *sparse {
	tail := append(make([]byte, 512), footer(size, change)...)
	copy(tail, backupSector(int64(size)))
	return &sparse{size: int64(size) + 512, head: gpt{size: int64(size)}.head(), tail: tail}
}

// with puts another start and last sector into a disk.
func (s *sparse) with(head []byte, last string) *sparse {
	s.head = head
	if len(s.tail) > 512 {
		clear(s.tail[:512])
		copy(s.tail, last)
	}
	return s
}

func put32(at int, v uint32) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) }
}

func put64(at int, v uint64) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint64(b[at:], v) }
}

func TestCheck(t *testing.T) {
	badSum := disk(64*mib, nil)
	badSum.tail[512+64] ^= 0x80
	trailing := disk(64*mib, nil)
	trailing.size, trailing.tail = trailing.size+3, append(trailing.tail, "\n\n\n"...)
	oneBehind := disk(64*mib, nil)
	oneBehind.size, oneBehind.tail = oneBehind.size+1, append(oneBehind.tail, "\n"...)
	cut := disk(64*mib, nil)
	cut.size, cut.tail = cut.size-1, cut.tail[:1023]
	gone := disk(64*mib, nil)
	gone.size, gone.tail = gone.size-4096, nil
	dynamic := func(b []byte) { put64(16, 512)(b); put32(60, 3)(b) }
	cutDynamic := &sparse{head: footer(64*mib, dynamic), size: 2 * mib}
	middle := disk(64*mib, nil)
	middle.size -= 14 * mib
	otherFooter := disk(64*mib, nil) // a disk that holds a VHD, whose footer is near its end
	otherFooter.size, otherFooter.tail = 64*mib, append(footer(7*mib, nil), make([]byte, 512)...)
	inside := func(head string) *sparse { return disk(64*mib, nil).with([]byte(head), "") }
	iso := make([]byte, 33<<10)
	copy(iso[32769:], "CD001")

	const end = 64 * mib // where the footer of most is
	missing := func(want string) string { return "missing content: offset " + want }
	tests := []struct {
		name string
		file *sparse
		want []string
	}{
		{"right", disk(64*mib, nil), nil},
		{"right, 4 TiB", disk(4<<40, nil), nil},
		{"smallest", disk(20*mib, nil), nil},
		{"largest", disk(32767<<30, nil), nil},
		{"too small", disk(19*mib, nil), []string{"offset 0: the file has 19923456 bytes, want at least 20972032 (20 MiB and the footer)"}},
		{"too large", disk(32767<<30+mib, nil), []string{"offset 0: the file has 35183299396096 bytes, want at most 35183298347520 (32767 GiB and the footer)"}},
		{"version", disk(64*mib, put32(12, 0x00020000)), []string{fmt.Sprintf("offset %d: the version is 0x00020000, want 0x00010000", end+12)}},
		{"data offset", disk(64*mib, put64(16, 512)), []string{fmt.Sprintf(
			"offset %d: the data offset is 0x0000000000000200, want all ones (0xffffffffffffffff), as there is no header", end+16)}},
		{"no MiB", disk(64*mib+512, nil), []string{fmt.Sprintf(
			"offset %d: the current size is 67109376, which is 512 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)", end+512+48)}},
		{"size too large", disk(64*mib, put64(48, 65*mib)), []string{missing(fmt.Sprintf(
			"%d: the current size is 68157440, but only 67108864 bytes are before the footer", end+48))}},
		{"size too small", disk(64*mib, put64(48, 63*mib)), []string{fmt.Sprintf(
			"offset %d: the current size is 66060288, but 67108864 bytes are before the footer: 1048576 more", end+48)}},
		{"size zero", disk(64*mib, put64(48, 0)), []string{
			fmt.Sprintf("offset %d: the current size is 0, which is 0 bytes over 0 MiB; want a multiple of 1 MiB (1048576 bytes)", end+48),
			fmt.Sprintf("offset %d: the current size is 0, but 67108864 bytes are before the footer: 67108864 more", end+48),
		}},
		{"size huge", disk(64*mib, put64(48, 1<<64-1)), []string{
			fmt.Sprintf("offset %d: the current size is 18446744073709551615, which is 1048575 bytes over 17592186044415 MiB; want a multiple of 1 MiB (1048576 bytes)", end+48),
			missing(fmt.Sprintf("%d: the current size is 18446744073709551615, but only 67108864 bytes are before the footer", end+48)),
		}},
		{"middle cut out", middle, []string{
			missing(fmt.Sprintf("%d: the current size is 67108864, but only 52428800 bytes are before the footer", 50*mib+48)),
			missing("512: the last partition of the GPT ends at 67091968, but the disk has only 52428800 bytes"),
		}},
		{"type 4", disk(64*mib, put32(60, 4)), []string{fmt.Sprintf("offset %d: the disk type is 4 (differencing), want 2 (fixed)", end+60)}},
		{"type 9", disk(64*mib, put32(60, 9)), []string{fmt.Sprintf("offset %d: the disk type is 9 (unknown), want 2 (fixed)", end+60)}},
		{"dynamic without a header", disk(64*mib, dynamic), []string{
			fmt.Sprintf("offset %d: the disk type is 3 (dynamic), want 2 (fixed)", end+60),
			missing("512: the header of the dynamic VHD should be here, but is missing or damaged: 0 blocks of 4294902016 bytes for 67108864 bytes, with the table at 17957043919938125824"),
		}},
		{"checksum", badSum, []string{fmt.Sprintf("offset %d: the checksum is 0x7ffff2dd, want 0xfffff2dd", end+64)}},
		{"everything", disk(64*mib+1024, func(b []byte) { put32(12, 0)(b); put32(16, 0)(b) }), []string{
			fmt.Sprintf("offset %d: the version is 0x00000000, want 0x00010000", end+1024+12),
			fmt.Sprintf("offset %d: the data offset is 0x00000000ffffffff, want all ones (0xffffffffffffffff), as there is no header", end+1024+16),
			fmt.Sprintf("offset %d: the current size is 67109888, which is 1024 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)", end+1024+48),
		}},
		{"bytes behind", trailing, []string{fmt.Sprintf("offset %d: the footer is here, not in the last 512 bytes: 3 bytes are behind it", end)}},
		{"a byte behind", oneBehind, []string{fmt.Sprintf("offset %d: the footer is here, not in the last 512 bytes: 1 byte is behind it", end)}},
		{"511 bytes of a footer", cut, []string{fmt.Sprintf("offset %d: the footer is cut: the file ends after 511 of its 512 bytes", end)}},
		{"no footer, cut", gone, []string{
			fmt.Sprintf(`offset %d: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`+
				"; by its partition table it is a whole raw disk", end-4096),
			"warning: offset 544: the backup GPT header is at sector 131071, but the last sector of the disk is 131064: Linux boots nevertheless",
		}},
		{"another footer near the end", otherFooter, []string{
			fmt.Sprintf(`offset %d: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`+
				"; by its partition table it is a whole raw disk", end-512),
			fmt.Sprintf("warning: offset %d: there is no backup GPT header at the end of the disk: Linux boots nevertheless", end-512),
		}},
		{"zeros", &sparse{size: 64 * mib}, []string{
			fmt.Sprintf(`offset %d: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`, end-512),
			"warning: offset 0: there is no partition table: a VM cannot boot from the disk, which is right for a data disk only",
		}},
		{"dynamic, cut", cutDynamic, []string{missing("0: the file begins as a dynamic VHD, but the footer at its end is missing: it was cut, or has bytes behind it")}},
		{"dynamic in fixed", inside(string(footer(64*mib, dynamic))), []string{"offset 0: the disk begins as a dynamic VHD that was taken for a raw disk"}},
		{"qcow2 in fixed", inside("QFI\xfb\x00\x00\x00\x03"), []string{"offset 0: the disk begins as a qcow2 image that was taken for a raw disk"}},
		{"gzip in fixed", inside("\x1f\x8b\x08"), []string{"offset 0: the disk begins as a gzip archive that was taken for a raw disk"}},
		{"ISO in fixed", inside(string(iso)), []string{"offset 0: the disk begins as an ISO image that was taken for a raw disk"}},
		{"empty", &sparse{}, []string{missing("0: the file is empty")}},
		{"one byte", &sparse{size: 1}, []string{missing("0: the file has 1 byte, fewer than a footer (512)")}},
		{"511 bytes", &sparse{size: 511}, []string{missing("0: the file has 511 bytes, fewer than a footer (512)")}},
		{"footer only", &sparse{size: 512, tail: footer(0, nil)}, []string{
			"offset 48: the current size is 0, which is 0 bytes over 0 MiB; want a multiple of 1 MiB (1048576 bytes)",
			missing("48: the current size is 0, but only 0 bytes are before the footer"),
			"offset 0: the file has 512 bytes, want at least 20972032 (20 MiB and the footer)",
		}},
		{"a byte and a footer", &sparse{size: 513, tail: footer(mib+1, nil)}, []string{
			"offset 49: the current size is 1048577, which is 1 byte over 1 MiB; want a multiple of 1 MiB (1048576 bytes)",
			missing("49: the current size is 1048577, but only 1 byte is before the footer"),
			"offset 0: the file has 513 bytes, want at least 20972032 (20 MiB and the footer)",
			"warning: offset 0: there is no partition table: a VM cannot boot from the disk, which is right for a data disk only",
		}},
		{"footer of 64 MiB only", &sparse{size: 512, tail: footer(64*mib, nil)}, []string{
			missing("48: the current size is 67108864, but only 0 bytes are before the footer"),
			"offset 0: the file has 512 bytes, want at least 20972032 (20 MiB and the footer)",
		}},
		{"VHDX", &sparse{size: 8 * mib, head: []byte("vhdxfileq\x00")}, []string{"offset 0: the file is a VHDX"}},
		{"old Parallels", &sparse{size: 8 * mib, head: []byte("WithoutFreeSpace")}, []string{"offset 0: the file is a Parallels image"}},
		{"VMDK of an old ESX", &sparse{size: 8 * mib, head: []byte("COWD")}, []string{"offset 0: the file is a VMDK"}},
		{"ISO", &sparse{size: 8 * mib, head: iso}, []string{"offset 0: the file is an ISO image"}},
		{"xz", &sparse{size: 100, head: []byte("\xfd7zXZ\x00")}, []string{"offset 0: the file is an xz archive"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { testCheck(t, tt.file, tt.want) })
	}
}

// testCheck compares the verdict. No command may make a file look whole that
// lacks content, and little is read.
func testCheck(t *testing.T, file *sparse, want []string) {
	t.Helper()
	_, problems, err := vhd.Check(file, file.size, "disk.vhd")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	lost := false
	for _, p := range problems {
		got = append(got, p.String())
		lost = lost || p.Verdict == vhd.Missing
		if p.Fix == "" && p.Verdict != vhd.Warning {
			t.Errorf("no remedy for %s", p)
		}
	}
	for _, p := range problems {
		if lost && strings.Contains(p.Fix, "disk.") {
			t.Errorf("content is missing, but %s", p.Fix)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if file.read > 200<<10 {
		t.Errorf("%d bytes read of %d", file.read, file.size)
	}
}

// TestPartitions: a footer may be right and the disk not boot.
func TestPartitions(t *testing.T) {
	const size, last = 64 * mib, 64*mib/512 - 1
	backup := string(backupSector(size))
	good := gpt{size: size}.head()
	badSum := bytes.Clone(good)
	badSum[512+40]++
	badLength := bytes.Clone(good)
	badLength[512+12] = 0
	noEntry := gpt{size: size, change: func(e []byte) { clear(e[:128]) }}.head()
	endless := gpt{size: size, change: func(e []byte) { copy(e[40:], "\xff\xff\xff\xff\xff\xff\xff\xff") }}.head()
	badEntry := bytes.Clone(good)
	badEntry[1024+40]++
	elsewhere := bytes.Clone(good)
	copy(elsewhere[512:], backup)
	noMBR := bytes.Clone(good)
	clear(noMBR[:512])
	otherMBR := bytes.Clone(good)
	copy(otherMBR, mbr(entry{0x83, 2048, 2048}))
	badTable := gpt{size: size}.header(1, last, 1<<40, good[1024:])
	badTable = append(bytes.Clone(good[:512]), append(badTable, good[512+92:]...)...)
	hybrid := bytes.Clone(good)
	copy(hybrid, mbr(entry{0xee, 1, 2047}, entry{0x83, 2048, 1 << 31}))
	fat := mbr()
	copy(fat[440:], "no system on this disk, press any key")
	tests := []struct {
		name string
		head []byte
		last string
		want []string
	}{
		{"GPT", good, backup, nil},
		{"GPT with entries further on", gpt{size: size, entries: 2048}.head(), backup, nil},
		{"GPT of a larger disk", gpt{size: 65 * mib}.head(), "", []string{
			"missing content: offset 512: the last partition of the GPT ends at 68140544, but the disk has only 67108864 bytes",
		}},
		{"GPT without end", endless, backup, []string{
			"missing content: offset 512: the last partition of the GPT ends at 576460752303424000, but the disk has only 67108864 bytes",
		}},
		{"GPT grown", gpt{size: size - mib}.head(), "", []string{
			"warning: offset 544: the backup GPT header is at sector 129023, but the last sector of the disk is 131071: Linux boots nevertheless",
		}},
		{"GPT cut behind its partitions", gpt{size: size + mib, end: size}.head(), "", []string{
			"warning: offset 544: the backup GPT header is at sector 133119, but the last sector of the disk is 131071: Linux boots nevertheless",
		}},
		{"GPT without backup", good, "", []string{
			fmt.Sprintf("warning: offset %d: there is no backup GPT header at the end of the disk: Linux boots nevertheless", last*512),
		}},
		{"GPT, damaged", badSum, backup, []string{
			"warning: offset 528: the checksum of the GPT header is " + sums(badSum[512:]),
		}},
		{"GPT, header too short", badLength, backup, []string{
			"warning: offset 528: the checksum of the GPT header is " + sums(badLength[512:]),
		}},
		{"GPT, empty", noEntry, backup, []string{"warning: offset 512: the GPT has no partition: a VM cannot boot from the disk"}},
		{"GPT, entry damaged", badEntry, backup, []string{fmt.Sprintf(
			"warning: offset 600: the checksum of the GPT entries is 0x%08x, want 0x%08x: the VM will not boot",
			crc32.ChecksumIEEE(good[1024:]), crc32.ChecksumIEEE(badEntry[1024:]))}},
		{"GPT, the backup's header in front", elsewhere, backup, []string{"warning: offset 536: the GPT header says that it is sector 131071, and not 1: the VM will not boot"}},
		{"GPT, entries elsewhere", badTable, backup, []string{"warning: offset 584: the GPT has 128 entries of 128 bytes at sector 1099511627776: the VM will not boot"}},
		{"GPT without a protective MBR", noMBR, backup, []string{"warning: offset 446: there is a GPT, but no protective MBR: the VM will not boot"}},
		{"MBR in front of what was a GPT", otherMBR, backup, nil},
		{"hybrid", hybrid, backup, nil},
		{"sectors of 4096", gpt{size: size, sector: 4096}.head(), "", []string{
			"warning: offset 4096: the partition table is for a disk with sectors of 4096 bytes, but Azure's have 512: the VM will not boot",
			fmt.Sprintf("warning: offset %d: there is no backup GPT header at the end of the disk: Linux boots nevertheless", size-4096),
		}},
		{"backup only", nil, backup, []string{
			"warning: offset 0: there is no partition table: a VM cannot boot from the disk, which is right for a data disk only",
		}},
		{"MBR that announces a GPT", good[:512], "", []string{
			"warning: offset 512: the MBR announces a GPT, but there is none: the VM will not boot",
		}},
		{"MBR", mbr(entry{0x83, 2048, last + 1 - 2048}), "", nil},
		{"MBR of a larger disk", mbr(entry{}, entry{0x83, 2048, last + 2 - 2048}), "", []string{
			"missing content: offset 0: the last partition of the MBR ends at 67109376, but the disk has only 67108864 bytes",
		}},
		{"MBR, empty", mbr(), "", []string{
			"warning: offset 0: there is no partition table: a VM cannot boot from the disk, which is right for a data disk only",
		}},
		{"file system without a table", fat, "", []string{
			"warning: offset 0: there is no partition table: a VM cannot boot from the disk, which is right for a data disk only",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { testCheck(t, disk(size, nil).with(tt.head, tt.last), tt.want) })
	}
}

// sums is what a header's checksum is, and should be.
func sums(h []byte) string {
	plain := bytes.Clone(h[:92])
	clear(plain[16:20])
	return fmt.Sprintf("0x%08x, want 0x%08x", binary.LittleEndian.Uint32(h[16:]), crc32.ChecksumIEEE(plain))
}

func TestCheckReadError(t *testing.T) {
	_, _, err := vhd.Check(bytes.NewReader(nil), 1<<20, "disk.vhd")
	if err != nil {
		t.Fatalf("a file that shrinks is an error of the file, not of reading: %v", err)
	}
	_, _, err = vhd.Check(failing{}, 1<<20, "disk.vhd")
	const want = "vhd: read 65536 bytes at 0: the disk is on fire"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, fmt.Errorf("the disk is on fire") }

// TestFixNames: the commands can be pasted into a shell, whatever the file is
// called, and never write over the file itself.
func TestFixNames(t *testing.T) {
	const flags = "-o subformat=fixed,force_size "
	oddEnd := &sparse{head: gpt{size: 64 * mib}.head(), size: 64*mib + 100 + 512, tail: footer(64*mib+100, nil)}
	tests := []struct {
		name string
		file *sparse
		want string
	}{
		{"disk.vhdx", &sparse{size: 8 * mib, head: []byte("vhdxfile")}, "qemu-img convert -f vhdx -O vpc " + flags + "disk.vhdx disk.fixed.vhd"},
		{"/a/.vhd", &sparse{size: 8 * mib, head: []byte("vhdxfile")}, "qemu-img convert -f vhdx -O vpc " + flags + "/a/.vhd /a/.vhd.fixed.vhd"},
		{"my disk's.vhdx", &sparse{size: 8 * mib, head: []byte("vhdxfile")}, `qemu-img convert -f vhdx -O vpc ` + flags + `'my disk'\''s.vhdx' 'my disk'\''s.fixed.vhd'`},
		{"-o.vhdx", &sparse{size: 8 * mib, head: []byte("vhdxfile")}, "qemu-img convert -f vhdx -O vpc " + flags + "./-o.vhdx ./-o.fixed.vhd"},
		{"nbd:x", &sparse{size: 8 * mib, head: []byte("vhdxfile")}, "qemu-img convert -f vhdx -O vpc " + flags + "./nbd:x ./nbd:x.fixed.vhd"},
		{"d.vhd.xz", &sparse{size: 100, head: []byte("\xfd7zXZ\x00")}, "xz -dc d.vhd.xz > d.vhd"},
		{"d.vhd", &sparse{size: 100, head: []byte("\xfd7zXZ\x00")}, "xz -dc d.vhd > d.vhd.vhd"},
		{"a,b", disk(64*mib, put32(12, 0)), "qemu-img convert --image-opts -O vpc " + flags + "driver=raw,size=67108864,file.filename=a,,b a,b.fixed.vhd"},
		{"d.vhd", disk(64*mib+512, nil), "qemu-img create -q -f vpc " + flags + "d.fixed.vhd 68157440 && " +
			"qemu-img convert -n --target-is-zero --image-opts -O vpc driver=raw,size=67109376,file.filename=d.vhd d.fixed.vhd"},
		{"d.vhd", disk(64*mib, put32(60, 4)), "merge it with its parent (Merge-VHD), then verify the result"},
		{"d.vhd", disk(3<<40, put32(12, 0)), "qemu-img makes no VHD over 2040 GiB: make the disk smaller, or use Hyper-V's Convert-VHD and Resize-VHD"},
		{"d.vhd", oddEnd, "head -c 67108964 d.vhd > d.fixed.raw && qemu-img create -q -f vpc " + flags + "d.fixed.vhd 68157440 && " +
			"qemu-img convert -n --target-is-zero -f raw -O vpc d.fixed.raw d.fixed.vhd"},
		{"d.zip", &sparse{size: 100, head: []byte("PK\x03\x04")}, "unzip d.zip\nthen verify the disk that was in it"},
		{"d.iso", &sparse{size: 40 << 10, head: append(make([]byte, 32769), "CD001"...)}, "get the disk image for Azure: an ISO is a medium to install from"},
	}
	for _, tt := range tests {
		_, problems, err := vhd.Check(tt.file, tt.file.size, tt.name)
		if err != nil || len(problems) == 0 || len(problems) > 1 && problems[1].Verdict != vhd.Warning {
			t.Errorf("%s: %v, %v", tt.name, problems, err)
			continue
		}
		if diff := cmp.Diff(strings.Split(tt.want, " "), strings.Split(problems[0].Fix, " ")); diff != "" {
			t.Errorf("%s: %s\n(-want +got):\n%s", tt.name, problems[0].Fix, diff)
		}
	}
}

// FuzzCheck: no content makes it fail, every problem has a remedy, and a file
// without a problem is what Azure takes.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{}, footer(64*mib, nil), int64(64*mib+512))
	f.Add([]byte("vhdxfile"), footer(19*mib, put32(60, 3)), int64(19*mib+512))
	f.Add(footer(1, nil), footer(1<<63, nil)[:400], int64(400))
	f.Add(gpt{size: 64 * mib}.head(), disk(64*mib, nil).tail, int64(64*mib+512))
	f.Add(gpt{size: 64 * mib, sector: 4096}.head(), disk(64*mib, nil).tail, int64(64*mib+512))
	f.Add(mbr(entry{0x83, 2048, 1000}), footer(20*mib, nil), int64(20*mib+512))
	f.Add(append(footer(64*mib, func(b []byte) { put64(16, 512)(b); put32(60, 3)(b) }), dynamicHeader(1536, 32, 2*mib)...),
		footer(64*mib, func(b []byte) { put64(16, 512)(b); put32(60, 3)(b) }), int64(5*mib))
	f.Fuzz(func(t *testing.T, head, tail []byte, size int64) {
		if size < 0 || int64(len(head)) > size || int64(len(tail)) > size {
			return
		}
		file := &sparse{head: head, tail: tail, size: size}
		got, problems, err := vhd.Check(file, size, "disk.vhd")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if p.Fix == "" && p.Verdict != vhd.Warning || p.Text == "" || p.Offset < 0 || p.Verdict != vhd.Missing && p.Offset > size {
				t.Fatalf("%+v", p)
			}
		}
		if slices.ContainsFunc(problems, func(p vhd.Problem) bool { return p.Verdict != vhd.Warning }) {
			return
		}
		if got.Type != vhd.Fixed || got.CurrentSize%mib != 0 || int64(got.CurrentSize) != size-512 || got.Checksum != got.Sum ||
			size < vhd.MinFile || size > vhd.MaxFile || !bytes.HasPrefix(tail[len(tail)-512:], []byte("conectix")) {
			t.Fatalf("%+v taken, file of %d bytes", got, size)
		}
	})
}

// dynamicHeader is the header of a dynamic VHD.
func dynamicHeader(table uint64, blocks, size uint32) []byte {
	b := make([]byte, 1024)
	copy(b, "cxsparse")
	binary.BigEndian.PutUint64(b[16:], table)
	binary.BigEndian.PutUint32(b[28:], blocks)
	binary.BigEndian.PutUint32(b[32:], size)
	return b
}
