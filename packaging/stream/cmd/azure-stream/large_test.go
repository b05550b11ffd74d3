package main

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// TestLargeDisk verifies a sparse disk of 4 TiB, as a process of its own: in
// seconds, and in little memory. The system counts this test's own memory too,
// since the process starts as its fork; on its own it takes 5 MiB.
func TestLargeDisk(t *testing.T) {
	const (
		size    = 4 << 40
		maxTime = 5 * time.Second
		maxRSS  = 64 << 10 // KiB
	)
	name := filepath.Join(t.TempDir(), "disk.vhd")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	footer := make([]byte, 512)
	copy(footer, "conectix")
	binary.BigEndian.PutUint32(footer[12:], 0x00010000)
	binary.BigEndian.PutUint64(footer[16:], 1<<64-1)
	binary.BigEndian.PutUint64(footer[48:], size)
	binary.BigEndian.PutUint32(footer[60:], 2)
	sum := uint32(0)
	for _, b := range footer {
		sum += uint32(b)
	}
	binary.BigEndian.PutUint32(footer[64:], ^sum)
	mbr := make([]byte, 512) // one partition of 1 TiB
	copy(mbr[446:], "\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x80")
	copy(mbr[510:], "\x55\xaa")
	if _, err := f.WriteAt(mbr, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(footer, size); errors.Is(err, syscall.EFBIG) && os.Getenv("CI") == "" {
		t.Skipf("the file system of %s has no files of 4 TiB: %v", name, err)
	} else if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), filepath.Join(build(t), "azure-stream"), "verify", "--vhd", name)
	// The peak of a process counts what it shared with this one before it became another program: getrusage(2). Other
	// tests may have made that large; proc_pid_clear_refs(5) has how it is set back.
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if want := name + ": ok: a fixed VHD of 4194304 MiB, checksum 0xfffff4a3\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s\nwant %s", err, out, want)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no resource usage")
	}
	t.Logf("%v, %d KiB", took, usage.Maxrss)
	if took > maxTime || usage.Maxrss > maxRSS {
		t.Errorf("%v and %d KiB, want at most %v and %d KiB", took, usage.Maxrss, maxTime, maxRSS)
	}
}
