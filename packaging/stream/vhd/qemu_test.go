package vhd_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/vhd"
)

// TestQemu has the real qemu-img make every kind of file that ends up in
// front of an upload, checks the verdict, and then does what the verdict says
// until Azure would take the file, with the disk's content in it.
func TestQemu(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs qemu-img (qemu-utils): %v", err)
		}
		t.Skipf("no qemu-img (qemu-utils): %v", err)
	}
	const (
		fixed = "-o subformat=fixed"
		force = "-o subformat=fixed,force_size"
	)
	tests := []struct {
		name  string
		size  int    // of the raw disk; 0: 64 MiB
		build string // makes "it" from "raw"
		want  []string
		lost  bool // content is missing, so that the file cannot be mended
	}{
		{name: "fixed and force_size", build: "qemu-img convert -f raw -O vpc " + force + " raw it"},
		{
			name: "fixed", build: "qemu-img convert -f raw -O vpc " + fixed + " raw it",
			want: []string{"offset 67125296: the current size is 67125248, which is 16384 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)"},
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
		{name: "VHDX", build: "qemu-img convert -f raw -O vhdx raw it", want: []string{"offset 0: the file is a VHDX"}},
		{name: "fixed VHDX", build: "qemu-img convert -f raw -O vhdx -o subformat=fixed raw it", want: []string{"offset 0: the file is a VHDX"}},
		{name: "qcow2", build: "qemu-img convert -f raw -O qcow2 raw it", want: []string{"offset 0: the file is a qcow2 image"}},
		{name: "VMDK", build: "qemu-img convert -f raw -O vmdk raw it", want: []string{"offset 0: the file is a VMDK"}},
		{
			name: "raw", build: "cp raw it",
			want: []string{`offset 67108352: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`},
		},
		{
			name: "raw, odd size", size: 64*mib + 100, build: "cp raw it",
			want: []string{`offset 67108452: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`},
		},
		{
			name: "misaligned", size: 64*mib + 7*512, build: "qemu-img convert -f raw -O vpc " + force + " raw it",
			want: []string{"offset 67112496: the current size is 67112448, which is 3584 bytes over 64 MiB; want a multiple of 1 MiB (1048576 bytes)"},
		},
		{
			name: "small", size: mib, build: "qemu-img convert -f raw -O vpc " + force + " raw it",
			want: []string{"offset 0: the file has 1049088 bytes, want at least 20972032 (20 MiB and the footer)"},
		},
		{
			name: "truncated by a byte", build: "qemu-img convert -f raw -O vpc " + force + " raw it && truncate -s -1 it",
			want: []string{"offset 67108864: the footer is cut: the file ends after 511 of its 512 bytes"},
		},
		{
			name: "truncated by its footer", build: "qemu-img convert -f raw -O vpc " + force + " raw it && truncate -s -512 it",
			want: []string{`offset 67108352: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`},
		},
		{
			name: "truncated in the middle", build: "qemu-img convert -f raw -O vpc " + force + " raw it && truncate -s 50M it", lost: true,
			want: []string{`offset 52428288: there is no footer: "\x00\x00\x00\x00\x00\x00\x00\x00" instead of "conectix"; the file is a raw disk, or a VHD that was cut`},
		},
		{
			name: "dynamic, truncated", build: "qemu-img convert -f raw -O vpc raw it && truncate -s -512 it", lost: true,
			want: []string{"offset 0: the file begins as a dynamic VHD, but the footer at its end is missing: it was cut"},
		},
		{
			name: "padded", build: "qemu-img convert -f raw -O vpc " + force + " raw it && printf '\\n' >> it",
			want: []string{"offset 67108864: the footer is here, not in the last 512 bytes: 1 bytes are behind it"},
		},
		{
			name: "qcow2 taken for raw", build: "qemu-img convert -f raw -O qcow2 raw q && qemu-img convert -f raw -O vpc " + force + " q it",
			want: []string{"offset 0: the disk begins as a qcow2 image: that was taken for a raw disk"},
		},
		{
			name: "dynamic taken for raw", build: "qemu-img convert -f raw -O vpc raw d && qemu-img convert -f raw -O vpc " + force + " d it",
			want: []string{"offset 0: the disk begins as a dynamic VHD: that was taken for a raw disk"},
		},
		{
			name: "compressed", build: "qemu-img convert -f raw -O vpc " + force + " raw d && gzip -1 < d > it",
			want: []string{"offset 0: the file is a gzip archive"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			raw := make([]byte, mib)
			copy(raw[mib/2:], "in the middle of the first MiB")
			if tt.size == 0 {
				tt.size = 64 * mib
			}
			if err := os.WriteFile("raw", raw, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate("raw", int64(tt.size)); err != nil {
				t.Fatal(err)
			}
			shell(t, tt.build)
			problems := check(t, "it")
			if diff := cmp.Diff(tt.want, described(t, "it", problems)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if tt.lost || len(problems) == 0 {
				return
			}
			name := "it"
			for range 3 { // unpacking may bring to light what is wrong inside
				name = mend(t, name, problems[0].Mend)
				if problems = check(t, name); len(problems) == 0 {
					break
				}
			}
			if len(problems) > 0 {
				t.Fatalf("after mending: %v", problems)
			}
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[:mib], raw) {
				t.Error("the content got lost")
			}
		})
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
// business, with offsets in the footer.
func described(t *testing.T, name string, problems []vhd.Problem) []string {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range problems {
		s := p.String()
		if info.Size() < 64*mib && p.Offset > info.Size()-512 {
			_, text, _ := strings.Cut(s, ": ")
			s = "footer+" + map[int64]string{48: "48", 60: "60"}[p.Offset-(info.Size()-512)] + ": " + text
		}
		all = append(all, s)
	}
	return all
}

// mend runs the command that a verdict gives and returns the new file's name,
// the one way that is not about getting the file anew.
func mend(t *testing.T, name, how string) string {
	t.Helper()
	for way := range strings.Lines(how) {
		way = strings.TrimSpace(way)
		for _, prefix := range []string{"if it is a raw disk: ", "or, since the disk itself is there: "} {
			way = strings.TrimPrefix(way, prefix)
		}
		if strings.HasPrefix(way, "qemu-img ") || strings.HasPrefix(way, "gzip ") {
			shell(t, way)
			for _, made := range []string{name + ".fixed.vhd", strings.TrimSuffix(name, ".vhd") + ".fixed.vhd", name + ".vhd"} {
				if _, err := os.Stat(made); err == nil {
					return made
				}
			}
			t.Fatalf("nothing made by %s", way)
		}
	}
	t.Fatalf("no command in %q", how)
	return ""
}
