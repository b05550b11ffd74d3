package kvp_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/kvp"
)

const (
	bootID  = "b0070001-0000-4000-8000-000000000001"
	oldBoot = "b0070000-0000-4000-8000-000000000000"
	// What a bubble's clock shows: synctest starts at midnight, 2000-01-01 UTC.
	ok = "result=success|agent=nm-azure-dispatch/0.1.0|boot_id=" + bootID + "|pps_type=None|vm_id=11223344-5566-7788-9900-aabbccddeeff|timestamp=2000-01-01T00:00:00Z"
	// A record of the boot before.
	stale  = "result=error|reason=old|agent=nm-azure-dispatch/0.1.0|boot_id=" + oldBoot + "|pps_type=None|timestamp=1999-12-31T00:00:00Z"
	theirs = "result=success|agent=Cloud-Init/23.4|timestamp=2000-01-01T00:00:00.120000+00:00|vm_id=x"
	// A reason with a field of ours in it.
	theirsQuoted = `result=error|"reason=a|boot_id=` + bootID + `|b"|agent=Azure-Init/0.1.1|timestamp=2000-01-01T00:00:00Z`
	theirOld     = "result=success|agent=Azure-Init/0.1.1|pps_type=None|vm_id=x|timestamp=1999-12-30T23:59:59+00:00"
)

// failed is the report of a failure, with the reason as it is quoted.
func failed(reason string) string {
	return "result=error|" + reason + "|agent=nm-azure-dispatch/0.1.0|boot_id=" + bootID +
		"|pps_type=None|vm_id=11223344-5566-7788-9900-aabbccddeeff|timestamp=2000-01-01T00:00:00Z|documentation_url=https://aka.ms/linuxprovisioningerror"
}

// The reports' times are UTC wherever the machine is.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("CET", 3600)
	os.Exit(m.Run())
}

func reporter(path string) *kvp.Reporter {
	return &kvp.Reporter{
		Path: path, Agent: "nm-azure-dispatch/0.1.0", BootID: bootID, VMID: "11223344-5566-7788-9900-aabbccddeeff",
		Booted: time.Now().Add(-time.Minute),
	}
}

// pool is the bytes of a pool: keys and values by turns.
func pool(kv ...string) []byte {
	var b []byte
	for i := 0; i < len(kv); i += 2 {
		r := make([]byte, 512+2048)
		copy(r, kv[i])
		copy(r[512:], kv[i+1])
		b = append(b, r...)
	}
	return b
}

func write(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".kvp_pool_1")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReport(t *testing.T) {
	const key = "PROVISIONING_REPORT"
	tests := []struct {
		name    string
		before  []byte
		reasons []string
		want    []byte
	}{
		{"into an empty pool", nil, []string{""}, pool(key, ok)},
		{"once in a boot", nil, []string{"", ""}, pool(key, ok)},
		{"behind other keys", pool("CLOUD_INIT|x", "y"), []string{""}, pool("CLOUD_INIT|x", "y", key, ok)},
		{"already there, of another run", pool(key, ok), []string{""}, pool(key, ok)},
		{"in the place of an earlier boot's", pool(key, stale, "k", "v"), []string{""}, pool(key, ok, "k", "v")},
		{"in the place of another agent's in an earlier boot", pool(key, theirOld), []string{""}, pool(key, ok)},
		{"in the place of one without a time", pool(key, "result=success"), []string{""}, pool(key, ok)},
		{"another agent reported in this boot", pool(key, theirs), []string{""}, pool(key, theirs)},
		{"another agent's whose reason looks like ours", pool(key, theirsQuoted), []string{""}, pool(key, theirsQuoted)},
		{"failure again, for another reason", nil, []string{"no route", "refused"}, pool(key, failed("reason=refused"))},
		{"failure after success", nil, []string{"", "refused"}, pool(key, failed("reason=refused"))},
		{"this boot's before an older one", pool(key, theirOld, key, ok), []string{"no route"}, pool(key, theirOld, key, failed("reason=no route"))},
		{"failure", nil, []string{"no route"}, pool(key, failed("reason=no route"))},
		{"failure with bars, quotes and newlines", nil, []string{"a|b \"c\"\nd"}, pool(key, failed(`"reason=a|b 'c'\nd"`))},
		{"what is true at last counts", nil, []string{"", "no route", ""}, pool(key, ok)},
		{"over a torn record", append(pool("k", "v"), []byte("PROVISIONING_RE")...), []string{""}, pool("k", "v", key, ok)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := write(t, tt.before)
				r := reporter(path)
				for _, reason := range tt.reasons {
					r.Report(reason)
				}
				got, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(show(tt.want), show(got)); diff != "" {
					t.Errorf("pool (-want +got):\n%s", diff)
				}
				if !bytes.Equal(got, tt.want) {
					t.Errorf("the padding is not zeros")
				}
			})
		})
	}
}

// Without a boot ID every record is of another boot, also one that was written without.
func TestNoBootID(t *testing.T) {
	const old = "result=success|agent=nm-azure-dispatch/0.1.0|boot_id=|pps_type=None|timestamp=1999-12-31T00:00:00Z"
	path := write(t, pool("PROVISIONING_REPORT", old))
	r := reporter(path)
	r.BootID = ""
	r.Report("")
	if got, err := os.ReadFile(path); err != nil || len(got) != 2560 || show(got)[1] == old {
		t.Errorf("%d bytes, %q, want a new record in the place of the old one; %v", len(got), show(got), err)
	}
}

// show makes a pool readable: a line for each field.
func show(b []byte) []string {
	var out []string
	for len(b) > 0 {
		n := min(512, len(b))
		out = append(out, string(bytes.TrimRight(b[:n], "\x00")))
		b = b[n:]
		n = min(2048, len(b))
		out = append(out, string(bytes.TrimRight(b[:n], "\x00")))
		b = b[n:]
	}
	return out
}

func TestNoPool(t *testing.T) {
	dir := t.TempDir()
	reporter(filepath.Join(dir, "hyperv", ".kvp_pool_1")).Report("")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("made %v, %v", entries, err)
	}
}

func TestNotAPool(t *testing.T) {
	file := write(t, nil)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, t.TempDir()} {
		reporter(path).Report("") // does not block
	}
	if b, err := os.ReadFile(file); err != nil || len(b) > 0 {
		t.Errorf("wrote through a link: %d bytes, %v", len(b), err)
	}
}

// A lease of another process on the pool is not waited for, which would take 45 s (fcntl(2)): nothing is written.
func TestLease(t *testing.T) {
	path := write(t, nil)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must have a file system with leases for TMPDIR: ", err)
		}
		t.Skip("the file system has no leases: ", err)
	}
	reporter(path).Report("")
	if b, err := os.ReadFile(path); err != nil || len(b) > 0 {
		t.Errorf("wrote %d bytes after the lease was broken; %v", len(b), err)
	}
}

func TestFull(t *testing.T) {
	full := bytes.Repeat(pool("k", "v"), 1024)
	path := write(t, full)
	reporter(path).Report("")
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, full) {
		t.Errorf("%d bytes, want the %d that were there; %v", len(got), len(full), err)
	}
}

func TestLimits(t *testing.T) {
	for _, reason := range []string{
		strings.Repeat("x", 5000), strings.Repeat("\"", 5000), strings.Repeat("ä|", 3000), "\xff\xfe" + strings.Repeat("\x00", 3000),
	} {
		path := write(t, nil)
		reporter(path).Report(reason)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		value := show(got)[1]
		if len(got) != 2560 || len(value) > 1022 || len(value) < 700 || !utf8.ValidString(value) {
			t.Errorf("%.10q: %d bytes, of them value %d: %q", reason, len(got), len(value), value)
		}
		if !strings.HasSuffix(value, "|documentation_url=https://aka.ms/linuxprovisioningerror") {
			t.Errorf("%.10q: the end is cut: %q", reason, value)
		}
	}
}

func TestLocked(t *testing.T) {
	flock := func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_SH) }
	ofdLock := func(f *os.File, kind int16) error {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind})
	}
	ofd := func(f *os.File) error { return ofdLock(f, unix.F_RDLCK) }
	unlock := func(f *os.File) error {
		return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), ofdLock(f, unix.F_UNLCK))
	}
	for name, lock := range map[string]func(*os.File) error{"flock": flock, "fcntl": ofd} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the waiting is not real
				path := write(t, nil)
				f, err := os.Open(path) // as any user can
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if err := lock(f); err != nil {
					t.Fatal(err)
				}
				r, start := reporter(path), time.Now()
				for range 5 {
					r.Report("")
				}
				if took := time.Since(start); took > 300*time.Millisecond {
					t.Errorf("waited %v in all", took)
				}
				size := func() int64 {
					fi, err := f.Stat()
					if err != nil {
						t.Fatal(err)
					}
					return fi.Size()
				}
				if size() > 0 {
					t.Error("wrote to a pool that another process has locked")
				}
				if err := unlock(f); err != nil {
					t.Fatal(err)
				}
				if r.Report(""); size() == 0 {
					t.Error("wrote nothing once it was unlocked")
				}
			})
		})
	}
}

func TestConcurrent(t *testing.T) {
	path := write(t, nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			reporter(path).Report("")
		})
	}
	wg.Wait()
	got, err := os.ReadFile(path)
	if err != nil || len(got) != 2560 {
		t.Errorf("%d bytes, want one record; %v", len(got), err)
	}
}

func TestVMID(t *testing.T) {
	const uuid = "44332211-6655-8877-9900-AABBCCDDEEFF\n"
	tests := []struct {
		name string
		root fstest.MapFS
		want string
	}{
		{"generation 1", fstest.MapFS{"sys/class/dmi/id/product_uuid": {Data: []byte(uuid)}}, "11223344-5566-7788-9900-aabbccddeeff"},
		{
			"generation 2",
			fstest.MapFS{"sys/class/dmi/id/product_uuid": {Data: []byte(uuid)}, "sys/firmware/efi/runtime": {}},
			"44332211-6655-8877-9900-aabbccddeeff",
		},
		{"unreadable", fstest.MapFS{}, ""},
		{"garbage", fstest.MapFS{"sys/class/dmi/id/product_uuid": {Data: []byte("Not Settable")}}, ""},
		{"hyphens", fstest.MapFS{"sys/class/dmi/id/product_uuid": {Data: []byte(strings.Repeat("-", 36))}}, ""},
	}
	for _, tt := range tests {
		if got := kvp.VMID(tt.root); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
