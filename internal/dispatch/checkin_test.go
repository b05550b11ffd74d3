package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/networkd"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// checkIn is a CheckIn whose reports end with these errors, then well.
func (w *world) checkIn(t *testing.T, failures ...error) *dispatch.CheckIn {
	t.Helper()
	if w.records.Dir == "" {
		w.records = newStore(t)
	}
	w.did = nil
	return &dispatch.CheckIn{
		Env: w.env(),
		Report: func(_ context.Context, r *wire.Reporter, h wire.Health) (wire.Outcome, error) {
			w.say("report %s to %s", h.State, r.Server)
			if len(failures) == 0 {
				return wire.Outcome{Attempt: wire.Attempt{Server: r.Server, Via: wire.ViaHealth}, Attempts: 1}, nil
			}
			err := failures[0]
			failures = failures[1:]
			r.OnAttempt(wire.Attempt{N: 1, Server: wire.DefaultAddr, Via: wire.ViaHealth, Err: err})
			return wire.Outcome{Attempts: 2}, err
		},
	}
}

var otherServer = dispatch.Target{Server: netip.MustParseAddr("100.64.0.7"), Source: boot.FromOption245, Interface: "eth0"}

// A forced run that fails leaves a final record as it is.
func TestForceKeepsWhatIsFinal(t *testing.T) {
	t.Run("ready", func(t *testing.T) {
		w := &world{}
		if _, err := w.checkIn(t).Run(t.Context(), otherServer, wire.Ready(), false); err != nil {
			t.Fatal(err)
		}
		before, _ := w.records.CheckIn()
		if _, err := w.checkIn(t, errors.New("refused")).Run(t.Context(), otherServer, wire.Ready(), true); err == nil {
			t.Fatal("no error")
		}
		after, _ := w.records.CheckIn()
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("record (-before +after):\n%s", diff)
		}
		if _, err := w.checkIn(t).Follow(t.Context(), otherServer, wire.ProvisioningFailed("late"), false); !errors.Is(err, dispatch.ErrDone) {
			t.Errorf("failure after Ready: %v", err)
		}
	})
	t.Run("failed", func(t *testing.T) {
		w := &world{}
		if _, err := w.checkIn(t).Follow(t.Context(), otherServer, wire.ProvisioningFailed("disks"), false); err != nil {
			t.Fatal(err)
		}
		if _, err := w.checkIn(t, errors.New("refused")).Run(t.Context(), otherServer, wire.Ready(), true); err == nil {
			t.Fatal("no error")
		}
		rec, err := w.checkIn(t).Run(t.Context(), otherServer, wire.Ready(), false)
		if !errors.Is(err, dispatch.ErrDone) || rec.State != boot.Failed || len(w.did) > 0 {
			t.Errorf("automatic run: %+v, %v; did %v", rec, err, w.did)
		}
		if rec, err = w.checkIn(t).Run(t.Context(), otherServer, wire.Ready(), true); err != nil || rec.State != boot.Ready {
			t.Errorf("forced run that gets through: %+v, %v", rec, err)
		}
	})
}

// A failure that was reported from the initrd blocks no Ready of the real root,
// nor a failure there; within the initrd it is final.
func TestFailedInInitrd(t *testing.T) {
	run := func(t *testing.T, initrd bool, f func(*dispatch.CheckIn) (boot.CheckIn, error)) (w *world, rec boot.CheckIn) {
		w = &world{}
		c := w.checkIn(t)
		c.Initrd = true
		if rec, err := c.Follow(t.Context(), otherServer, wire.ProvisioningFailed("disks"), false); err != nil || !rec.Initrd {
			t.Fatal(rec, err)
		}
		c = w.checkIn(t)
		c.Initrd = initrd
		rec, err := f(c)
		if errors.Is(err, dispatch.ErrDone) != initrd {
			t.Errorf("in the initrd %v: %v", initrd, err)
		}
		return w, rec
	}
	ready := func(c *dispatch.CheckIn) (boot.CheckIn, error) {
		return c.Run(t.Context(), otherServer, wire.Ready(), false)
	}
	failed := func(c *dispatch.CheckIn) (boot.CheckIn, error) {
		return c.Follow(t.Context(), otherServer, wire.ProvisioningFailed("late"), false)
	}
	if w, rec := run(t, true, ready); len(w.did) > 0 || rec.State != boot.Failed {
		t.Errorf("Ready in the initrd: did %v, record %+v", w.did, rec)
	}
	if w, rec := run(t, false, ready); len(w.did) == 0 || rec.State != boot.Ready || rec.Initrd {
		t.Errorf("Ready in the real root: did %v, record %+v", w.did, rec)
	}
	if w, rec := run(t, false, failed); len(w.did) == 0 || rec.State != boot.Failed || rec.Initrd {
		t.Errorf("failure in the real root: did %v, record %+v", w.did, rec)
	}
}

// While it is tried the record says where the last attempt went, and counts those
// of the runs before.
func TestRecordWhileTrying(t *testing.T) {
	w := &world{}
	var started time.Time
	for run := range 2 {
		if _, err := w.checkIn(t, errors.New("refused")).Run(t.Context(), otherServer, wire.Ready(), false); err == nil {
			t.Fatal("no error")
		}
		rec, err := w.records.CheckIn()
		if err != nil {
			t.Fatal(err)
		}
		if rec.State != boot.Trying || rec.Source != boot.FromConstant || rec.WireServer != wire.DefaultAddr.String() || rec.Attempts != 2*(run+1) || rec.LastError != "refused" {
			t.Errorf("run %d: record %+v", run, rec)
		}
		if run == 0 {
			started = rec.StartedAt
		}
		if rec.StartedAt.IsZero() || !rec.StartedAt.Equal(started) {
			t.Errorf("run %d: started at %v, want the time of the first run, %v", run, rec.StartedAt, started)
		}
	}
}

// The same failure is said once a minute, over all runs; what a server sent does
// not make it another one.
func TestSameFailureSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		said := func(failures ...error) int {
			c := w.checkIn(t)
			c.Report = func(_ context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
				for _, err := range failures {
					r.OnAttempt(wire.Attempt{Server: r.Server, Err: err})
				}
				return wire.Outcome{}, errors.New("time is up")
			}
			if _, err := c.Run(t.Context(), otherServer, wire.Ready(), false); err == nil {
				t.Fatal("no error")
			}
			return len(w.did)
		}
		refused := fmt.Errorf("wire: GET x: dial: %w", syscall.ECONNREFUSED)
		page := func(id int) error { return fmt.Errorf("wire: goal state: request %d is before the root element", id) }
		if n := said(refused, refused, page(1), page(2), &wire.StatusError{Code: 503}, &wire.StatusError{Code: 503}); n != 3 {
			t.Errorf("%d entries, want 3: %v", n, w.did)
		}
		if n := said(refused); n != 1 { // the last one was another
			t.Errorf("%d entries, want 1: %v", n, w.did)
		}
		if n := said(refused); n != 0 {
			t.Errorf("%d entries, want none: %v", n, w.did)
		}
		time.Sleep(61 * time.Second)
		if n := said(refused); n != 1 {
			t.Errorf("a minute later: %d entries, want 1: %v", n, w.did)
		}
		rec, err := w.records.CheckIn()
		rec.UpdatedAt = rec.UpdatedAt.Add(time.Hour)
		if err := errors.Join(err, w.records.WriteCheckIn(rec)); err != nil {
			t.Fatal(err)
		}
		if n := said(refused); n != 1 {
			t.Errorf("after the clock was set back: %d entries, want 1: %v", n, w.did)
		}
	})
}

// A run that finds the lock held leaves it; one that follows takes over, and
// looks again once it has the lock.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		c := w.checkIn(t)
		unlock, err := w.records.LockCheckIn()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context(), otherServer, wire.Ready(), false); !errors.Is(err, boot.ErrLocked) {
			t.Errorf("Run: %v, want ErrLocked", err)
		}
		short, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("not done after 1s"))
		defer cancel()
		_, err = c.Follow(short, otherServer, wire.Ready(), false)
		want := "boot: " + filepath.Join(w.records.Dir, "check-in.lock") + ": another run holds the lock, and has not ended: not done after 1s; see nm-azure-dispatch status"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		time.AfterFunc(3*time.Second, func() {
			if err := w.records.WriteCheckIn(boot.CheckIn{State: boot.Ready, Attempts: 7}); err != nil {
				t.Error(err)
			}
			unlock()
		})
		rec, err := c.Follow(t.Context(), otherServer, wire.Ready(), false)
		if !errors.Is(err, dispatch.ErrDone) || rec.Attempts != 7 || len(w.did) > 0 {
			t.Errorf("record %+v, %v; did %v", rec, err, w.did)
		}
	})
}

// The holder is done between our first look and the lock.
func TestLookAgainUnderTheLock(t *testing.T) {
	w := &world{}
	c := w.checkIn(t)
	c.Log = w.log
	looked := make(chan struct{})
	unlock, err := w.records.LockCheckIn()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-looked
		_ = w.records.WriteCheckIn(boot.CheckIn{State: boot.Ready})
		unlock()
	}()
	if _, err := c.Run(t.Context(), otherServer, wire.Ready(), false); !errors.Is(err, boot.ErrLocked) {
		t.Fatal(err)
	}
	close(looked)
	if rec, err := c.Follow(t.Context(), otherServer, wire.Ready(), false); !errors.Is(err, dispatch.ErrDone) || rec.State != boot.Ready || len(w.did) > 0 {
		t.Errorf("record %+v, %v; did %v", rec, err, w.did)
	}
}

// A run that follows another one follows its record: the holder of the lock may be
// stopped (SIGSTOP) after it is done.
func TestFollowsTheRecord(t *testing.T) {
	w := &world{}
	c := w.checkIn(t)
	unlock, err := w.records.LockCheckIn()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	time.AfterFunc(50*time.Millisecond, func() { _ = w.records.WriteCheckIn(boot.CheckIn{State: boot.Ready}) })
	if rec, err := c.Follow(ctx, otherServer, wire.Ready(), false); !errors.Is(err, dispatch.ErrDone) || rec.State != boot.Ready {
		t.Errorf("record %+v, %v", rec, err)
	}
}

func TestTargetOf(t *testing.T) {
	own := addrs("10.0.0.5 168.63.129.16") // a test bed can have the default address
	for addr, want := range map[string]string{
		"168.63.129.16": "", "100.64.0.7": "",
		"10.0.0.4":    "option 245: 10.0.0.4 is an address of this machine",
		"10.0.0.5":    "option 245: 10.0.0.5 is an address of this machine",
		"127.0.0.1":   "option 245: wire: server address 127.0.0.1: loopback",
		"169.254.1.1": "option 245: wire: server address 169.254.1.1: link-local",
	} {
		got := dispatch.TargetOf("eth0", nm.Lease{Address: netip.MustParseAddr("10.0.0.4"), WireServer: netip.MustParseAddr(addr)}, own)
		if got.Why != want || (want == "") != (got.Source == boot.FromOption245) || want != "" && got.Server != wire.DefaultAddr {
			t.Errorf("%s: %+v, want %q", addr, got, want)
		}
	}
}

// The order of leases is the same for the unit, status and doctor.
func TestLeased(t *testing.T) {
	azure := &nm.Lease{Routes: []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}}
	primary, secondary := &nm.Lease{Routers: addrs("10.0.0.1")}, &nm.Lease{}
	dev := func(name string, l *nm.Lease) nm.Device { return nm.Device{Interface: name, Lease: l} }
	tests := []struct {
		name    string
		devices []nm.Device
		links   []networkd.Link
		routes  string
		want    string
	}{
		{name: "none"},
		{name: "no lease", devices: []nm.Device{dev("eth0", nil)}, links: []networkd.Link{{Name: "eth1"}}, routes: "eth0"},
		{name: "the default route's", devices: []nm.Device{dev("eth0", primary), dev("eth1", secondary)}, routes: "eth1 eth0", want: "eth1 eth0"},
		{name: "the route to the WireServer, whatever the metric", devices: []nm.Device{dev("eth1", primary), dev("eth0", azure)}, routes: "eth1 eth0", want: "eth0 eth1"},
		{name: "of a VF and its twin the preferred", devices: []nm.Device{dev("eth0", azure), dev("enP1", azure)}, routes: "enP1 eth0", want: "enP1 eth0"},
		{name: "the default route's has none", devices: []nm.Device{dev("eth0", secondary), dev("eth1", primary)}, routes: "wg0", want: "eth1 eth0"},
		{name: "a primary one", devices: []nm.Device{dev("eth0", secondary), dev("eth1", primary), dev("eth2", primary)}, want: "eth1 eth2 eth0"},
		{name: "any", devices: []nm.Device{dev("eth0", nil), dev("eth1", secondary)}, want: "eth1"},
		{name: "systemd-networkd's", devices: []nm.Device{dev("eth1", secondary)}, links: []networkd.Link{{Name: "eth0", Lease: azure}}, want: "eth0 eth1"},
	}
	for _, tt := range tests {
		var got []string
		for _, d := range dispatch.Leased(tt.devices, tt.links, strings.Fields(tt.routes)) {
			got = append(got, d.Interface)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}
