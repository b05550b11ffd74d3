package vhd_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
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

func disk(size uint64, change func(b []byte)) *sparse {
	return &sparse{size: int64(size) + 512, tail: footer(size, change)}
}

func put32(at int, v uint32) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) }
}

func put64(at int, v uint64) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint64(b[at:], v) }
}

func TestCheck(t *testing.T) {
	badSum := disk(64*mib, nil)
	badSum.tail[64] ^= 0x80
	trailing := disk(64*mib, nil)
	trailing.size, trailing.tail = trailing.size+3, append(trailing.tail, "\n\n\n"...)
	cut := disk(64*mib, nil)
	cut.size, cut.tail = cut.size-1, cut.tail[:511]
	gone := disk(64*mib, nil)
	gone.size, gone.tail = gone.size-4096, nil
	dynamic := func(b []byte) { put64(16, 512)(b); put32(60, 3)(b) }
	cutDynamic := &sparse{head: footer(64*mib, dynamic), size: 2 * mib}
	wrapped := disk(64*mib, nil)
	wrapped.head = footer(64*mib, dynamic)
	inVHD := disk(64*mib, nil)
	inVHD.head = []byte("QFI\xfb\x00\x00\x00\x03")
	archive := disk(64*mib, nil)
	archive.head = []byte("\x1f\x8b\x08")

	const end = 64 * mib // where the footer of most is
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
		{"size too large", disk(64*mib, put64(48, 65*mib)), []string{fmt.Sprintf(
			"offset %d: the current size is 68157440, but only 67108864 bytes are before the footer: 1048576 are missing", end+48)}},
		{"size too small", disk(64*mib, put64(48, 63*mib)), []string{fmt.Sprintf(
			"offset %d: the current size is 66060288, but 67108864 bytes are before the footer: 1048576 too many", end+48)}},
		{"size zero", disk(64*mib, put64(48, 0)), []string{
			fmt.Sprintf("offset %d: the current size is 0, which is 0 bytes over 0 MiB; want a multiple of 1 MiB (1048576 bytes)", end+48),
			fmt.Sprintf("offset %d: the current size is 0, but 67108864 bytes are before the footer: 67108864 too many", end+48),
		}},
		{"size huge", disk(64*mib, put64(48, 1<<64-1)), []string{
			fmt.Sprintf("offset %d: the current size is 18446744073709551615, which is 1048575 bytes over 17592186044415 MiB; want a multiple of 1 MiB (1048576 bytes)", end+48),
			fmt.Sprintf("offset %d: the current size is 18446744073709551615, but only 67108864 bytes are before the footer: 18446744073642442751 are missing", end+48),
		}},
		{"type 4", disk(64*mib, put32(60, 4)), []string{fmt.Sprintf("offset %d: the disk type is 4 (differencing), want 2 (fixed)", end+60)}},
		{"type 9", disk(64*mib, put32(60, 9)), []string{fmt.Sprintf("offset %d: the disk type is 9 (unknown), want 2 (fixed)", end+60)}},
		{"checksum", badSum, []string{fmt.Sprintf("offset %d: the checksum is 0x7ffff2dd, want 0xfffff2dd", end+64)}},
		{"everything", disk(64*mib+1024, func(b []byte) { put32(12, 0)(b); put32(16, 0)(b) }), []string{
			fmt.Sprintf("offset %d: the version is 0x00000000, want 0x00010000", end+1024+12),
			fmt.Sprintf("offset %d: the data offset is 0x00000000ffffffff, want all ones (0xffffffffffffffff), as there is no header", end+1024+16),
			fmt.Sprintf("offset %d: the current size is 67109888, which is 1024 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)", end+1024+48),
		}},
		{"bytes behind", trailing, []string{fmt.Sprintf("offset %d: the footer is here, not in the last 512 bytes: 3 bytes are behind it", end)}},
		{"511 bytes of a footer", cut, []string{fmt.Sprintf("offset %d: the footer is cut: the file ends after 511 of its 512 bytes", end)}},
		{"no footer", gone, []string{fmt.Sprintf(
			`offset %d: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`, end-4096)}},
		{"dynamic, cut", cutDynamic, []string{"offset 0: the file begins as a dynamic VHD, but the footer at its end is missing: it was cut"}},
		{"dynamic in fixed", wrapped, []string{"offset 0: the disk begins as a dynamic VHD: that was taken for a raw disk"}},
		{"qcow2 in fixed", inVHD, []string{"offset 0: the disk begins as a qcow2 image: that was taken for a raw disk"}},
		{"gzip in fixed", archive, []string{"offset 0: the disk begins as a gzip archive: that was taken for a raw disk"}},
		{"empty", &sparse{}, []string{"offset 0: the file is empty"}},
		{"one byte", &sparse{size: 1}, []string{"offset 0: the file has 1 bytes, fewer than a footer (512)"}},
		{"511 bytes", &sparse{size: 511}, []string{"offset 0: the file has 511 bytes, fewer than a footer (512)"}},
		{"footer only", &sparse{size: 512, tail: footer(0, nil)}, []string{
			"offset 48: the current size is 0, which is 0 bytes over 0 MiB; want a multiple of 1 MiB (1048576 bytes)",
			"offset 0: the file has 512 bytes, want at least 20972032 (20 MiB and the footer)",
		}},
		{"VHDX", &sparse{size: 8 * mib, head: []byte("vhdxfileq\x00")}, []string{"offset 0: the file is a VHDX"}},
		{"xz", &sparse{size: 100, head: []byte("\xfd7zXZ\x00")}, []string{"offset 0: the file is an xz archive"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems, err := vhd.Check(tt.file, tt.file.size, "disk.vhd")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
				if p.Mend == "" {
					t.Errorf("no remedy for %s", p)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.file.read > 70<<10 {
				t.Errorf("%d bytes read of %d", tt.file.read, tt.file.size)
			}
		})
	}
}

func TestCheckReadError(t *testing.T) {
	_, _, err := vhd.Check(bytes.NewReader(nil), 1<<20, "disk.vhd")
	if err != nil {
		t.Fatalf("a file that shrinks is an error of the file, not of reading: %v", err)
	}
	_, _, err = vhd.Check(failing{}, 1<<20, "disk.vhd")
	const want = "vhd: read 512 bytes at 0: the disk is on fire"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, fmt.Errorf("the disk is on fire") }

// TestMendNames: the commands can be pasted into a shell, whatever the file is
// called, and never write over the file itself.
func TestMendNames(t *testing.T) {
	const flags = "-o subformat=fixed,force_size "
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
		{"d.vhd", disk(64*mib, func(b []byte) { put32(60, 3)(b); put64(48, 1<<63)(b) }), "qemu-img makes no VHD over 2040 GiB: make the disk smaller, or use Hyper-V's Convert-VHD and Resize-VHD"},
	}
	for _, tt := range tests {
		_, problems, err := vhd.Check(tt.file, tt.file.size, tt.name)
		if err != nil || len(problems) != 1 {
			t.Errorf("%s: %v, %v", tt.name, problems, err)
			continue
		}
		if diff := cmp.Diff(strings.Split(tt.want, " "), strings.Split(problems[0].Mend, " ")); diff != "" {
			t.Errorf("%s: %s\n(-want +got):\n%s", tt.name, problems[0].Mend, diff)
		}
	}
}

// FuzzCheck: no content makes it fail, every problem has a remedy, and a file
// without a problem is what Azure takes.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{}, footer(64*mib, nil), int64(64*mib+512))
	f.Add([]byte("vhdxfile"), footer(19*mib, put32(60, 3)), int64(19*mib+512))
	f.Add(footer(1, nil), footer(1<<63, nil)[:400], int64(400))
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
			if p.Mend == "" || p.Text == "" || p.Offset < 0 || p.Offset > size {
				t.Fatalf("%+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		if got.Type != vhd.Fixed || got.CurrentSize%mib != 0 || int64(got.CurrentSize) != size-512 || got.Checksum != got.Sum ||
			size < vhd.MinFile || size > vhd.MaxFile || !bytes.HasPrefix(tail[len(tail)-512:], []byte("conectix")) {
			t.Fatalf("%+v taken, file of %d bytes", got, size)
		}
	})
}
