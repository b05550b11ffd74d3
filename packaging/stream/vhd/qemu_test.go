package vhd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/vhd"
)

const (
	fixed  = "-o subformat=fixed"
	force  = "-o subformat=fixed,force_size"
	noFoot = `: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`
	whole  = "; by its partition table it is a whole raw disk"
)

// A qemuTest makes a file that ends up in front of an upload.
type qemuTest struct {
	name  string
	size  int64  // of the raw disk; 0: 64 MiB
	build string // makes "it" from "raw"
	want  []string
	lost  bool // content is missing, so that the file cannot be fixed
}

func backupAt(at, last int64) string {
	return fmt.Sprintf("warning: offset 544: the backup GPT header is at sector %d, but the last sector of the disk is %d: Linux boots nevertheless", at, last)
}

// TestQemu has the real qemu-img make every kind of VHD, checks the verdict,
// and then runs the commands that the verdict gives until Azure would take the
// file, with all of the disk's content in it.
func TestQemu(t *testing.T) {
	needs(t, "qemu-img")
	toVHD := "qemu-img convert -f raw -O vpc " + force + " raw it"
	for _, tt := range []qemuTest{
		{name: "fixed and force_size", build: toVHD},
		{
			name: "fixed", build: "qemu-img convert -f raw -O vpc " + fixed + " raw it",
			want: []string{
				"offset 67125296: the current size is 67125248, which is 16384 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)",
				backupAt(131071, 131103),
			},
		},
		{
			name: "dynamic", build: "qemu-img convert -f raw -O vpc raw it",
			want: []string{
				"footer+48: the current size is 67125248, which is 16384 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)",
				"footer+60: the disk type is 3 (dynamic), want 2 (fixed)",
			},
		},
		{
			name: "dynamic and force_size", build: "qemu-img convert -f raw -O vpc -o subformat=dynamic,force_size raw it",
			want: []string{"footer+60: the disk type is 3 (dynamic), want 2 (fixed)"},
		},
		{name: "raw", build: "cp raw it", want: []string{"offset 67108352: there is no footer: \"EFI PART\" instead of \"conectix\"; the file is a raw disk, or a VHD that was cut" + whole}},
		{
			name: "raw, odd size", size: 64*mib + 100, build: "cp raw it",
			want: []string{"offset 67108452: there is no footer: \"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\" instead of \"conectix\"; the file is a raw disk, or a VHD that was cut" + whole},
		},
		{
			name: "odd size with a footer", size: 64*mib + 100, build: "qemu-img convert -f raw -O vpc " + force + " raw d && { cat raw; tail -c 512 d; } > it",
			want: []string{
				"offset 67109012: the current size is 67109376, which is 512 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)",
				"missing content: offset 67109012: the current size is 67109376, but only 67108964 bytes are before the footer",
			}, lost: true,
		},
		{
			name: "odd size with its footer", size: 64*mib + 100,
			build: "qemu-img convert -f raw -O vpc " + force + " raw d && { cat raw; tail -c 512 d; } > it && " +
				"printf '\\000\\000\\000\\000\\004\\000\\000\\144' | dd of=it bs=1 seek=67109012 conv=notrunc status=none",
			want: []string{
				"offset 67109012: the current size is 67108964, which is 100 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)",
				"checksum",
			},
		},
		{
			name: "misaligned", size: 64*mib + 7*512, build: toVHD,
			want: []string{"offset 67112496: the current size is 67112448, which is 3584 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)"},
		},
		{
			name: "current size a MiB too small", build: toVHD + " && printf '\\000\\000\\000\\000\\003\\360\\000\\000' | dd of=it bs=1 seek=67108912 conv=notrunc status=none",
			want: []string{
				"offset 67108912: the current size is 66060288, but 67108864 bytes are before the footer: 1048576 more",
				"checksum",
			},
		},
		{
			name: "small", size: mib, build: toVHD,
			want: []string{"offset 0: the file has 1049088 bytes, want at least 20972032 (20 MiB and the footer)"},
		},
		{
			name: "truncated by a byte", build: toVHD + " && truncate -s -1 it",
			want: []string{"offset 67108864: the footer is cut: the file ends after 511 of its 512 bytes"},
		},
		{
			name: "truncated by its footer", build: toVHD + " && truncate -s -512 it",
			want: []string{"offset 67108352: there is no footer: \"EFI PART\" instead of \"conectix\"; the file is a raw disk, or a VHD that was cut" + whole},
		},
		{
			name: "truncated in the middle", build: toVHD + " && truncate -s 50M it", lost: true,
			want: []string{
				"offset 52428288" + noFoot,
				"missing content: offset 512: the last partition of the GPT ends at 67091968, but the disk has only 52428800 bytes",
			},
		},
		{
			name: "middle cut out", build: toVHD + " && { head -c 30M it; tail -c 20M it; } > x && mv x it", lost: true,
			want: []string{
				"missing content: offset 52428336: the current size is 67108864, but only 52428288 bytes are before the footer",
				"missing content: offset 512: the last partition of the GPT ends at 67091968, but the disk has only 52428288 bytes",
			},
		},
		{
			name: "footer only", build: toVHD + " && tail -c 512 it > x && mv x it", lost: true,
			want: []string{
				"missing content: offset 48: the current size is 67108864, but only 0 bytes are before the footer",
				"offset 0: the file has 512 bytes, want at least 20972032 (20 MiB and the footer)",
			},
		},
		{
			name: "dynamic, truncated", build: "qemu-img convert -f raw -O vpc raw it && truncate -s -512 it", lost: true,
			want: []string{"missing content: offset 0: the file begins as a dynamic VHD, but the footer at its end is missing: it was cut, or has bytes behind it"},
		},
		{
			name: "dynamic, middle cut out", lost: true,
			build: "qemu-img convert -f raw -O vpc -o subformat=dynamic,force_size raw d && { head -c 3M d; tail -c 512 d; } > it",
			want: []string{
				"footer+60: the disk type is 3 (dynamic), want 2 (fixed)",
				"missing content: offset 2099712: block 4 of the dynamic VHD should be here, but the footer is at 3145728",
			},
		},
		{
			name: "padded", build: toVHD + " && printf '\\n' >> it",
			want: []string{"offset 67108864: the footer is here, not in the last 512 bytes: 1 byte is behind it"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t) })
	}
}

// TestContainers: what is not a VHD is known by its content, also with a
// footer behind it, and the commands unpack it.
func TestContainers(t *testing.T) {
	needs(t, "qemu-img")
	convert := func(format, options string) string {
		return "qemu-img convert -f raw -O " + format + " " + options + " raw it"
	}
	const vhd = "qemu-img convert -f raw -O vpc " + force + " raw d && "
	files := []struct {
		name, build, what string
		needs             string
		inVHD             string // how it is fixed in a VHD: "" as it is, "no" not at all
	}{
		{name: "dynamic VHD", build: convert("vpc", "-o force_size"), what: "a dynamic VHD"},
		{name: "VHDX", build: convert("vhdx", ""), what: "a VHDX"},
		{name: "fixed VHDX", build: convert("vhdx", fixed), what: "a VHDX"},
		{name: "qcow", build: convert("qcow", ""), what: "a qcow image"},
		{name: "qcow2", build: convert("qcow2", ""), what: "a qcow2 image"},
		{name: "QED", build: convert("qed", ""), what: "a QED image"},
		{name: "VDI", build: convert("vdi", ""), what: "a VDI"},
		{name: "fixed VDI", build: convert("vdi", "-o static=on"), what: "a VDI"},
		{name: "Parallels", build: convert("parallels", ""), what: "a Parallels image"},
		{name: "VMDK", build: convert("vmdk", ""), what: "a VMDK"},
		{name: "VMDK of an OVA", build: convert("vmdk", "-o subformat=streamOptimized"), what: "a VMDK"},
		{name: "VMDK descriptor", build: convert("vmdk", "-o subformat=monolithicFlat"), what: "the descriptor of a VMDK", inVHD: "no"},
		{name: "gzip", build: vhd + "gzip -1 < d > it", what: "a gzip archive", needs: "gzip"},
		{name: "xz", build: vhd + "xz -0 < d > it", what: "an xz archive", needs: "xz"},
		{name: "bzip2", build: vhd + "bzip2 -1 < d > it", what: "a bzip2 archive", needs: "bzip2", inVHD: "no"},
		{name: "zstd", build: vhd + "zstd -q < d > it", what: "a zstd archive", needs: "zstd", inVHD: "no"},
		{name: "zip", build: vhd + "mv d disk.vhd && zip -q it.zip disk.vhd && mv it.zip it && rm disk.vhd", what: "a zip archive", needs: "zip unzip", inVHD: "no"},
		{name: "tar", build: vhd + "mv d disk.vhd && tar -Scf it disk.vhd && rm disk.vhd", what: "a tar archive", needs: "tar", inVHD: "no"},
	}
	for _, tt := range files {
		t.Run(tt.name, func(t *testing.T) {
			needs(t, tt.needs)
			want := []string{"offset 0: the file is " + tt.what}
			if tt.name == "dynamic VHD" {
				want = []string{"footer+60: the disk type is 3 (dynamic), want 2 (fixed)"}
			}
			qemuTest{size: 24 * mib, build: tt.build, want: want}.run(t)
		})
		t.Run(tt.name+" in a VHD", func(t *testing.T) {
			needs(t, tt.needs)
			qemuTest{
				size:  24 * mib,
				build: tt.build + " && mv it q && qemu-img convert -f raw -O vpc " + force + " q it",
				want:  []string{"offset 0: the disk begins as " + tt.what + " that was taken for a raw disk"},
				lost:  tt.inVHD == "no",
			}.run(t)
		})
	}
}

// needs skips a test where a tool is missing; in CI that is a failure.
func needs(t *testing.T, tools string) {
	t.Helper()
	for tool := range strings.FieldsSeq(tools) {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("CI needs %s: %v", tool, err)
			}
			t.Skipf("no %s: %v", tool, err)
		}
	}
}

func (tt qemuTest) run(t *testing.T) {
	t.Chdir(t.TempDir())
	if tt.size == 0 {
		tt.size = 64 * mib
	}
	raw := writeDisk(t, "raw", tt.size)
	shell(t, tt.build)
	problems := check(t, "it")
	if diff := cmp.Diff(tt.want, described(t, "it", problems)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if tt.lost {
		for _, p := range problems {
			if p.Fix != "" && !strings.HasPrefix(p.Fix, "get the file again") && !strings.HasPrefix(p.Fix, "convert the original") {
				t.Errorf("a command for what cannot be fixed: %s", p.Fix)
			}
		}
		return
	}
	name := "it"
	for range 4 { // unpacking may bring to light what is wrong inside
		problems = slices.DeleteFunc(problems, func(p vhd.Problem) bool { return p.Verdict == vhd.Warning })
		if len(problems) == 0 {
			break
		}
		name = fix(t, name, problems[0].Fix)
		problems = check(t, name)
	}
	if len(problems) > 0 {
		t.Fatalf("after fixing: %v", problems)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	disk := got[:len(got)-512]
	if !bytes.HasPrefix(disk, raw) || bytes.Count(disk[len(raw):], []byte{0}) != len(disk)-len(raw) {
		t.Error("the content changed")
	}
}

func shell(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func check(t *testing.T, name string) []vhd.Problem {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	_, problems, err := vhd.Check(f, info.Size(), name)
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// described returns the problems; for a dynamic VHD, whose size is qemu-img's
// business, with offsets in the footer. Checksums differ from run to run.
func described(t *testing.T, name string, problems []vhd.Problem) []string {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range problems {
		s := p.String()
		if at := p.Offset - (info.Size() - 512); info.Size() < 64*mib && info.Size() > 512 && at > 0 && p.Verdict != vhd.Missing {
			_, text, _ := strings.Cut(s, ": ")
			s = fmt.Sprintf("footer+%d: %s", at, text)
		}
		if strings.Contains(s, "the checksum is") {
			s = "checksum"
		}
		all = append(all, s)
	}
	return all
}

// fix runs the command that a verdict gives and returns the name of the VHD
// that it made.
func fix(t *testing.T, name, how string) string {
	t.Helper()
	before, err := filepath.Glob("*")
	if err != nil {
		t.Fatal(err)
	}
	command, _, _ := strings.Cut(how, "\nthen ")
	shell(t, command)
	after, err := filepath.Glob("*")
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range after {
		if !slices.Contains(before, made) && !strings.HasSuffix(made, ".raw") {
			return made
		}
	}
	t.Fatalf("nothing made of %s by %s", name, command)
	return ""
}
