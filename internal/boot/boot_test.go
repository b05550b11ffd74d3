package boot_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
)

const (
	thisBoot = "11111111-2222-3333-4444-555555555555"
	lastBoot = "66666666-7777-8888-9999-000000000000"
)

func TestID(t *testing.T) {
	tests := []struct{ name, content, want, err string }{
		{name: "as the kernel writes it", content: thisBoot + "\n", want: thisBoot},
		{name: "empty", content: "\n", err: `boot: boot ID: /proc/sys/kernel/random/boot_id holds "", want a UUID`},
		{name: "path", content: "../../../../../../../../../../../etc/x", err: `boot: boot ID: /proc/sys/kernel/random/boot_id holds "../../../../../../../../../../../etc/x", want a UUID`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := boot.ID(fstest.MapFS{"proc/sys/kernel/random/boot_id": {Data: []byte(tt.content)}})
			if got != tt.want || errText(err) != tt.err {
				t.Errorf("got %q, %q; want %q, %q", got, errText(err), tt.want, tt.err)
			}
		})
	}
	if _, err := boot.ID(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without /proc: %v, want fs.ErrNotExist", err)
	}
}

func TestCheckInRoundTrip(t *testing.T) {
	d := newDir(t)
	want := boot.CheckIn{
		BootID: thisBoot, State: boot.Ready, WireServer: "168.63.129.16", Source: boot.FromOption245, Via: "health",
		Interface: "eth0", Incarnation: "7", ContainerID: "c", InstanceID: "i", Attempts: 3,
		StartedAt: time.Now().UTC(), UpdatedAt: time.Now().UTC(), AfterBootMS: 8123,
	}
	if err := d.WriteCheckIn(want); err != nil {
		t.Fatal(err)
	}
	got, err := d.CheckIn(thisBoot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if _, err := d.CheckIn(lastBoot); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for another boot: %v, want fs.ErrNotExist", err)
	}
	if _, err := d.CheckIn(""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for an unknown boot: %v, want fs.ErrNotExist", err)
	}
	wantMode(t, string(d), 0o755|fs.ModeDir)
	wantMode(t, filepath.Join(string(d), "check-in.json"), 0o644)
}

// The names of the fields are an interface.
func TestFieldNames(t *testing.T) {
	names := func(v any) (out []string) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(strings.NewReader(string(b)))
		for depth := 0; ; {
			tok, err := dec.Token()
			if err != nil {
				return out
			}
			switch tok := tok.(type) {
			case json.Delim:
				if tok == '{' || tok == '[' {
					depth++
				} else {
					depth--
				}
			case string:
				if depth == 1 {
					out = append(out, tok)
					var skip any
					if err := dec.Decode(&skip); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	wantCheckIn := strings.Fields("boot_id state wireserver source via interface incarnation container_id instance_id attempts last_error started_at updated_at after_boot_ms")
	if diff := cmp.Diff(wantCheckIn, names(boot.CheckIn{})); diff != "" {
		t.Errorf("check-in.json (-want +got):\n%s", diff)
	}
	wantLink := strings.Fields("boot_id interface state reason nameservers domains updated_at")
	if diff := cmp.Diff(wantLink, names(boot.Link{})); diff != "" {
		t.Errorf("links/<ifindex>.json (-want +got):\n%s", diff)
	}
}

func TestLink(t *testing.T) {
	d := newDir(t)
	want := boot.Link{
		BootID: thisBoot, Interface: "eth0", State: boot.Pushed,
		Nameservers: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}, Domains: []string{"a.example"},
	}
	if err := d.WriteLink(7, want); err != nil {
		t.Fatal(err)
	}
	got, err := d.Link(7, thisBoot, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	for _, id := range []string{lastBoot, ""} {
		if _, err := d.Link(7, id, "eth0"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("boot %q: %v, want fs.ErrNotExist", id, err)
		}
	}
	if _, err := d.Link(7, thisBoot, "eth1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the index came back with another interface: %v, want fs.ErrNotExist", err)
	}
	if n, ok := d.FindLink(thisBoot, "eth0"); n != 7 || !ok {
		t.Errorf("FindLink = %d, %v; want 7", n, ok)
	}
	for range 2 {
		if err := d.RemoveLink(7); err != nil {
			t.Error(err)
		}
	}
	if n, ok := d.FindLink(thisBoot, "eth0"); ok {
		t.Errorf("FindLink = %d after removal", n)
	}
}

// Whatever lies where the record should be never counts as one, and is never
// followed, waited for or destroyed.
func TestRecordInTheWay(t *testing.T) {
	good := `{"boot_id":"` + thisBoot + `","state":"ready"}`
	tests := []struct {
		name  string
		make  func(t *testing.T, file string)
		write bool // a new record can take its place
	}{
		{"empty", content(""), true},
		{"torn", content(good[:30]), true},
		{"no JSON", content("\x00\xff"), true},
		{"another type", content(`[1]`), true},
		{"unknown state", content(`{"boot_id":"` + thisBoot + `","state":"done"}`), true},
		{"64 KiB and more", content(good + strings.Repeat(" ", 64<<10)), true},
		{"of another boot", content(`{"boot_id":"` + lastBoot + `","state":"ready"}`), true},
		{"directory", func(t *testing.T, file string) { must(t, os.Mkdir(file, 0o755)) }, false},
		{"FIFO", func(t *testing.T, file string) { must(t, syscall.Mkfifo(file, 0o644)) }, false},
		{"symlink to a good record", func(t *testing.T, file string) {
			to := filepath.Join(t.TempDir(), "elsewhere")
			must(t, os.WriteFile(to, []byte(good), 0o644))
			must(t, os.Symlink(to, file))
		}, false},
		{"writable by all", func(t *testing.T, file string) {
			must(t, os.WriteFile(file, []byte(good), 0o644))
			must(t, os.Chmod(file, 0o666))
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDir(t)
			must(t, os.Mkdir(string(d), 0o755))
			file := filepath.Join(string(d), "check-in.json")
			tt.make(t, file)
			before, err := os.Lstat(file)
			must(t, err)
			if rec, err := d.CheckIn(thisBoot); err == nil {
				t.Errorf("counts as a record: %+v", rec)
			}
			err = d.WriteCheckIn(boot.CheckIn{BootID: thisBoot, State: boot.Ready})
			if (err == nil) != tt.write {
				t.Errorf("writing: %v", err)
			}
			if _, err := d.CheckIn(thisBoot); (err == nil) != tt.write {
				t.Errorf("reading back: %v", err)
			}
			if after, err := os.Lstat(file); !tt.write && (err != nil || !os.SameFile(before, after)) {
				t.Errorf("what was in the way is gone: %v", err)
			}
		})
	}
}

func TestDirectoryNotTrusted(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, dir string)
	}{
		{"symlink", func(t *testing.T, dir string) { must(t, os.Symlink(t.TempDir(), dir)) }},
		{"file", func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o644)) }},
		{"writable by all", func(t *testing.T, dir string) { must(t, os.Mkdir(dir, 0o755)); must(t, os.Chmod(dir, 0o777)) }},
		{"somebody else's", func(t *testing.T, dir string) {
			needRoot(t)
			must(t, os.Mkdir(dir, 0o755))
			must(t, os.Chown(dir, 65534, 65534))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDir(t)
			tt.make(t, string(d))
			if err := d.WriteCheckIn(boot.CheckIn{BootID: thisBoot, State: boot.Ready}); err == nil {
				t.Error("a record was written")
			}
			if _, err := d.CheckIn(thisBoot); err == nil {
				t.Error("a record was read")
			}
			if _, err := d.LockCheckIn(); err == nil || errors.Is(err, boot.ErrLocked) {
				t.Errorf("lock: %v, want another error than ErrLocked", err)
			}
			if to, err := filepath.EvalSymlinks(string(d)); err == nil {
				if entries, _ := os.ReadDir(to); len(entries) > 0 {
					t.Errorf("%v was left there", entries)
				}
			}
		})
	}
}

func TestLock(t *testing.T) {
	d := newDir(t)
	unlock, err := d.LockCheckIn()
	must(t, err)
	wantMode(t, filepath.Join(string(d), "check-in.lock"), 0o600)
	if _, err := d.LockCheckIn(); !errors.Is(err, boot.ErrLocked) {
		t.Errorf("second: %v, want ErrLocked", err)
	}
	unlock()
	unlock, err = d.LockCheckIn()
	must(t, err)
	unlock()
}

// A run that is killed while it writes leaves a file behind; the next holder
// of the lock takes it away, and nothing else.
func TestLockSweeps(t *testing.T) {
	d := newDir(t)
	must(t, os.MkdirAll(filepath.Join(string(d), "links"), 0o755))
	for _, name := range []string{
		".check-in.json1234", "check-in.json", "links/.2.json567", "links/2.json", "links/.3.json8", "links/.22.json9",
	} {
		must(t, os.WriteFile(filepath.Join(string(d), name), nil, 0o600))
	}
	unlock, err := d.LockCheckIn()
	must(t, err)
	defer unlock()
	unlockLink, err := d.LockLink(t.Context(), 2)
	must(t, err)
	defer unlockLink()
	want := []string{"check-in.json", "check-in.lock", "links/.22.json9", "links/.3.json8", "links/2.json", "links/2.lock"}
	if diff := cmp.Diff(want, files(t, d)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// files are the directory's, in order.
func files(t *testing.T, d boot.Dir) (names []string) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS(string(d)), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// One run has the lock, one waits for it, and no third one stays.
func TestLinkTurn(t *testing.T) {
	d := newDir(t)
	first, err := d.LinkTurn(2)
	must(t, err)
	if waited, err := first.Begin(t.Context()); waited || err != nil {
		t.Errorf("first: waited %v, %v", waited, err)
	}
	second, err := d.LinkTurn(2)
	must(t, err)
	for range 2 {
		if third, err := d.LinkTurn(2); !errors.Is(err, boot.ErrLocked) {
			t.Errorf("third: %v, %v, want ErrLocked", third, err)
		}
	}
	other, err := d.LinkTurn(3)
	must(t, err)
	other.End()

	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if waited, err := second.Begin(short); !waited || !errors.Is(err, boot.ErrLocked) {
		t.Errorf("second, out of time: waited %v, %v", waited, err)
	}
	second, err = d.LinkTurn(2) // the one that gave up is in nobody's way
	must(t, err)
	first.End()
	first.End()
	if waited, err := second.Begin(t.Context()); !waited || err != nil {
		t.Errorf("second: waited %v, %v", waited, err)
	}
	third, err := d.LinkTurn(2) // while the second looks
	must(t, err)
	third.End()
	second.End()
	unlock, err := d.LockLink(t.Context(), 2)
	must(t, err)
	unlock()

	var none *boot.Turn
	if waited, err := none.Begin(t.Context()); waited || err != nil {
		t.Errorf("nil: waited %v, %v", waited, err)
	}
	none.End()
}

func TestLockLinkWaits(t *testing.T) {
	d := newDir(t)
	unlock, err := d.LockLink(t.Context(), 2)
	must(t, err)
	other, err := d.LockLink(t.Context(), 3)
	must(t, err)
	other()

	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := d.LockLink(short, 2); !errors.Is(err, boot.ErrLocked) {
		t.Errorf("held: %v, want ErrLocked", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		u, err := d.LockLink(t.Context(), 2)
		if err != nil {
			t.Error(err)
			return
		}
		u()
	})
	unlock()
	wg.Wait()
}

// However a record was torn, reading it neither fails hard nor says ready for
// another boot.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"boot_id":"` + thisBoot + `","state":"ready"}`))
	f.Add([]byte(`{"boot_id":"` + lastBoot + `","state":"ready"}`))
	f.Add([]byte(`{"boot_id":`))
	f.Add([]byte(`{"boot_id":"` + thisBoot + `","interface":"eth0","state":"pushed","nameservers":["10.0.0.1","::1"],"domains":["a"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDir(t)
		must(t, os.MkdirAll(filepath.Join(string(d), "links"), 0o755))
		for _, name := range []string{"check-in.json", "links/2.json"} {
			must(t, os.WriteFile(filepath.Join(string(d), name), b, 0o644))
		}
		if rec, err := d.CheckIn(thisBoot); err == nil && rec.BootID != thisBoot {
			t.Errorf("record %+v", rec)
		}
		rec, err := d.Link(2, thisBoot, "eth0")
		if err == nil && (rec.BootID != thisBoot || rec.Interface != "eth0") {
			t.Errorf("link's record %+v", rec)
		}
		if n, ok := d.FindLink(thisBoot, "eth0"); ok != (err == nil) || ok && n != 2 {
			t.Errorf("found link %d, %v; reading it: %v", n, ok, err)
		}
		if err := d.WriteCheckIn(boot.CheckIn{BootID: thisBoot, State: boot.Ready}); err != nil {
			t.Error(err)
		}
	})
}

func newDir(t *testing.T) boot.Dir { return boot.Dir(filepath.Join(t.TempDir(), "state")) }

func content(s string) func(*testing.T, string) {
	return func(t *testing.T, file string) { must(t, os.WriteFile(file, []byte(s), 0o644)) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("CI must run this as root")
	}
	t.Skip("only root can give files away")
}

func wantMode(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	fi, err := os.Lstat(name)
	must(t, err)
	if fi.Mode() != want {
		t.Errorf("%s has mode %v, want %v", name, fi.Mode(), want)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Once a boot, for each name.
func TestFirst(t *testing.T) {
	dir := newDir(t)
	got := []bool{dir.First("a"), dir.First("a"), dir.First("b"), dir.First("a")}
	if diff := cmp.Diff([]bool{true, false, true, false}, got); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if inTheWay := boot.Dir(filepath.Join(string(dir), "a")); !inTheWay.First("c") || !inTheWay.First("c") {
		t.Error("no mark could be made, and yet it was not the first")
	}
}
