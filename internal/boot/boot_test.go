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
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
)

const (
	thisBoot = "11111111-2222-3333-4444-555555555555"
	lastBoot = "66666666-7777-8888-9999-000000000000"
)

// The program sets the umask before it writes a record.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	os.Exit(m.Run())
}

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
	_, err := boot.ID(fstest.MapFS{})
	if want := "boot: boot ID: /proc/sys/kernel/random/boot_id: file does not exist"; !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
		t.Errorf("without /proc: %v, want fs.ErrNotExist and %q", err, want)
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
	got, err := d.CheckIn()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if _, err := of(d, lastBoot).CheckIn(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for another boot: %v, want fs.ErrNotExist", err)
	}
	if _, err := of(d, "").CheckIn(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for an unknown boot: %v, want fs.ErrNotExist", err)
	}
	wantMode(t, d.Dir, 0o755|fs.ModeDir)
	wantMode(t, filepath.Join(d.Dir, "check-in.json"), 0o644)
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
		Interface: "eth0", State: boot.Pushed,
		Nameservers: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}, Domains: []string{"a.example"},
	}
	must(t, d.WriteLink(7, want))
	got, err := d.Link(7, "eth0")
	must(t, err)
	want.BootID = thisBoot
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]boot.Link{7: got}, d.Links(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("all records (-want +got):\n%s", diff)
	}
	for _, id := range []string{lastBoot, ""} {
		if _, err := of(d, id).Link(7, "eth0"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("boot %q: %v, want fs.ErrNotExist", id, err)
		}
		if n := len(of(d, id).Links()); n != 0 {
			t.Errorf("boot %q: %d records, want none", id, n)
		}
	}
	if _, err := d.Link(7, "eth1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the index came back with another interface: %v, want fs.ErrNotExist", err)
	}
}

// A record without a boot ID is of no boot, not of one whose ID is not known.
func TestEmptyBootID(t *testing.T) {
	d := of(newDir(t), "")
	must(t, d.WriteCheckIn(boot.CheckIn{State: boot.Ready}))
	must(t, d.WriteLink(7, boot.Link{Interface: "eth0", State: boot.Pushed}))
	if _, err := d.CheckIn(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("check-in: %v, want fs.ErrNotExist", err)
	}
	if _, err := d.Link(7, "eth0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("link: %v, want fs.ErrNotExist", err)
	}
}

// Nothing stays of a link that is gone, and everything of those that are not.
func TestRemoveGone(t *testing.T) {
	d := newDir(t)
	must(t, d.RemoveGone(func(int) bool { return false })) // nothing there yet
	must(t, os.MkdirAll(filepath.Join(d.Dir, "links"), 0o755))
	for _, name := range []string{"2.json", "2.lock", "2.next", "2.json.new", "22.json", "22.lock", "README"} {
		must(t, os.WriteFile(filepath.Join(d.Dir, "links", name), nil, 0o600))
	}
	must(t, d.RemoveGone(func(ifindex int) bool { return ifindex == 22 }))
	if diff := cmp.Diff([]string{"links/22.json", "links/22.lock", "links/README"}, files(t, d)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	must(t, d.RemoveGone(func(int) bool { // another run is faster
		must(t, os.RemoveAll(filepath.Join(d.Dir, "links")))
		return false
	}))
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
		{"writable by its group", func(t *testing.T, file string) {
			must(t, os.WriteFile(file, []byte(good), 0o644))
			must(t, os.Chmod(file, 0o664))
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDir(t)
			must(t, os.Mkdir(d.Dir, 0o755))
			file := filepath.Join(d.Dir, "check-in.json")
			tt.make(t, file)
			before, err := os.Lstat(file)
			must(t, err)
			if rec, err := d.CheckIn(); err == nil {
				t.Errorf("counts as a record: %+v", rec)
			}
			err = d.WriteCheckIn(boot.CheckIn{State: boot.Ready})
			if (err == nil) != tt.write {
				t.Errorf("writing: %v", err)
			}
			if _, err := d.CheckIn(); (err == nil) != tt.write {
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
		err  string // the end of it
		make func(t *testing.T, dir string)
	}{
		{"symlink", "a symbolic link, want a directory: remove it", func(t *testing.T, dir string) { must(t, os.Symlink(t.TempDir(), dir)) }},
		{"file", "a regular file, want a directory: remove it", func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o644)) }},
		{"writable by all", "has mode 0777, others can write to it: remove it", func(t *testing.T, dir string) { must(t, os.Mkdir(dir, 0o755)); must(t, os.Chmod(dir, 0o777)) }},
		{"another user's", "belongs to user 65534, want root: remove it", func(t *testing.T, dir string) {
			needRoot(t)
			must(t, os.Mkdir(dir, 0o755))
			must(t, os.Chown(dir, 65534, 65534))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDir(t)
			tt.make(t, d.Dir)
			if err := d.WriteCheckIn(boot.CheckIn{State: boot.Ready}); !strings.HasSuffix(errText(err), tt.err) {
				t.Errorf("write: %v, want an error that ends in %q", err, tt.err)
			}
			if _, err := d.CheckIn(); err == nil {
				t.Error("a record was read")
			}
			if _, err := d.LockCheckIn(); err == nil || errors.Is(err, boot.ErrLocked) {
				t.Errorf("lock: %v, want another error than ErrLocked", err)
			}
			if to, err := filepath.EvalSymlinks(d.Dir); err == nil {
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
	wantMode(t, filepath.Join(d.Dir, "check-in.lock"), 0o600)
	if _, err := d.LockCheckIn(); !errors.Is(err, boot.ErrLocked) {
		t.Errorf("second: %v, want ErrLocked", err)
	}
	unlock()
	unlock, err = d.LockCheckIn()
	must(t, err)
	unlock()
}

// A run that is killed while it writes leaves a file behind, which counts as nothing,
// and which the next one that writes replaces.
func TestInterruptedWrite(t *testing.T) {
	d := newDir(t)
	must(t, os.MkdirAll(filepath.Join(d.Dir, "links"), 0o755))
	for _, name := range []string{"check-in.json.new", "links/2.json.new"} {
		must(t, os.WriteFile(filepath.Join(d.Dir, name), []byte(`{"boot_id":"`+thisBoot+`","state":"ready"`+strings.Repeat(" ", 1000)+`}`), 0o644))
	}
	if rec, err := d.CheckIn(); !errors.Is(err, fs.ErrNotExist) || len(d.Links()) > 0 {
		t.Errorf("counts as a record: %+v, %v, %v", rec, err, d.Links())
	}
	must(t, d.WriteCheckIn(boot.CheckIn{State: boot.Trying}))
	must(t, d.WriteLink(2, boot.Link{Interface: "eth0", State: boot.Pushed}))
	if rec, err := d.CheckIn(); err != nil || rec.State != boot.Trying {
		t.Errorf("record %+v, %v", rec, err)
	}
	if rec, err := d.Link(2, "eth0"); err != nil || rec.State != boot.Pushed {
		t.Errorf("link's record %+v, %v", rec, err)
	}
	if diff := cmp.Diff([]string{"check-in.json", "links/2.json"}, files(t, d)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	wantMode(t, filepath.Join(d.Dir, "check-in.json"), 0o644)
}

// files are the directory's, in order.
func files(t *testing.T, d boot.Store) (names []string) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS(d.Dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// One run has its turn, one waits for it, and no third one stays.
func TestTurn(t *testing.T) { synctest.Test(t, testTurn) }

func testTurn(t *testing.T) {
	d := newDir(t)
	first, err := d.LockLink(t.Context(), 2)
	must(t, err)
	other, err := d.LockLink(t.Context(), 3)
	must(t, err)
	other()
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := d.LockLink(short, 2); !errors.Is(err, boot.ErrLocked) || errors.Is(err, boot.ErrQueued) || short.Err() == nil {
		t.Errorf("second, out of time: %v", err)
	}

	got := make(chan func(), 1) // the one that gave up is in nobody's way
	go func() {
		end, err := d.LockLink(t.Context(), 2)
		must(t, err)
		got <- end
	}()
	synctest.Wait()
	for range 2 {
		if _, err := d.LockLink(t.Context(), 2); !errors.Is(err, boot.ErrQueued) {
			t.Errorf("third: %v; want ErrQueued at once", err)
		}
	}
	first()
	second := <-got
	if _, err := d.LockLink(canceled(t), 2); !errors.Is(err, boot.ErrLocked) || errors.Is(err, boot.ErrQueued) {
		t.Errorf("while the second looks another one may wait: %v", err)
	}
	second()
	end, err := d.LockLink(t.Context(), 2)
	must(t, err)
	end()
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A lock that others could open is replaced, also while it is held.
func TestPublicLock(t *testing.T) {
	for _, mode := range []fs.FileMode{0o644, 0o666, 0o640} {
		d := newDir(t)
		must(t, os.Mkdir(d.Dir, 0o755))
		file := filepath.Join(d.Dir, "check-in.lock")
		must(t, os.WriteFile(file, nil, 0o600))
		must(t, os.Chmod(file, mode))
		theirs, err := os.Open(file)
		must(t, err)
		defer func() { _ = theirs.Close() }()
		must(t, syscall.Flock(int(theirs.Fd()), syscall.LOCK_EX))
		unlock, err := d.LockCheckIn()
		if err != nil {
			t.Fatalf("mode %04o: %v", mode, err)
		}
		wantMode(t, file, 0o600)
		if _, err := d.LockCheckIn(); !errors.Is(err, boot.ErrLocked) {
			t.Errorf("mode %04o, second: %v, want ErrLocked", mode, err)
		}
		unlock()
	}
}

// Where no file can be created there is no lock, which is not that another run holds it: the caller continues without.
func TestNoLock(t *testing.T) {
	d := boot.Store{Dir: "/proc/sys/kernel", BootID: thisBoot}
	if _, err := d.LockCheckIn(); err == nil || errors.Is(err, boot.ErrLocked) {
		t.Errorf("%v, want an error that is not ErrLocked", err)
	}
}

// What is no regular file is no lock: it is neither followed nor opened.
func TestLockInTheWay(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for name, put := range map[string]func(file string) error{
		"symlink": func(file string) error { return os.Symlink(elsewhere, file) },
		"FIFO":    func(file string) error { return syscall.Mkfifo(file, 0o600) },
	} {
		d := newDir(t)
		must(t, os.Mkdir(d.Dir, 0o755))
		must(t, put(filepath.Join(d.Dir, "check-in.lock")))
		if _, err := d.LockCheckIn(); err == nil || errors.Is(err, boot.ErrLocked) {
			t.Errorf("%s: %v, want an error that is not ErrLocked", name, err)
		}
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("the link was followed")
	}
}

// A lock whose file was removed while a run opened it protects nothing.
func TestRemovedLock(t *testing.T) {
	d := newDir(t)
	unlock, err := d.LockCheckIn()
	must(t, err)
	defer unlock()
	must(t, os.Remove(filepath.Join(d.Dir, "check-in.lock")))
	other, err := d.LockCheckIn()
	must(t, err)
	defer other()
	if _, err := d.LockCheckIn(); !errors.Is(err, boot.ErrLocked) {
		t.Errorf("third: %v, want ErrLocked", err)
	}
}

// However a record was torn, reading it neither fails hard nor says ready for
// another boot.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"boot_id":"` + thisBoot + `","state":"ready"}`))
	f.Add([]byte(`{"boot_id":"` + lastBoot + `","state":"ready"}`))
	f.Add([]byte(`{"boot_id":`))
	f.Add([]byte(`{"boot_id":"` + thisBoot + `","interface":"eth0","state":"pushed","nameservers":["10.0.0.1","::1"],"domains":["a"]}`))
	d := boot.Store{Dir: f.TempDir(), BootID: thisBoot} // one for all executions: to make it takes longer than the rest
	if err := os.Mkdir(filepath.Join(d.Dir, "links"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{"check-in.json", "links/2.json"} {
			must(t, os.WriteFile(filepath.Join(d.Dir, name), b, 0o644))
		}
		if rec, err := d.CheckIn(); err == nil && rec.BootID != thisBoot {
			t.Errorf("record %+v", rec)
		}
		rec, err := d.Link(2, "eth0")
		if err == nil && (rec.BootID != thisBoot || rec.Interface != "eth0") {
			t.Errorf("link's record %+v", rec)
		}
		if found, ok := d.Links()[2]; err == nil && (!ok || found.Interface != "eth0") {
			t.Errorf("found link %v, %v", found, ok)
		}
		if err := d.WriteCheckIn(boot.CheckIn{State: boot.Ready}); err != nil {
			t.Error(err)
		}
	})
}

func newDir(t *testing.T) boot.Store {
	return boot.Store{Dir: filepath.Join(t.TempDir(), "state"), BootID: thisBoot}
}

// of is the same directory in another boot.
func of(d boot.Store, bootID string) boot.Store { return boot.Store{Dir: d.Dir, BootID: bootID} }

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
