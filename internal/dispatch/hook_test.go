package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const bootID = "11111111-2222-3333-4444-555555555555"

// world is a machine: what the far ends say, and what was asked of them.
type world struct {
	dev        nm.Device
	nmErr      error
	dns        nm.DNSConfig
	globalDNS  bool
	resolved   resolv.State
	resolveErr error // of every call to resolved
	setErrs    []error
	domainsErr error
	lost       bool         // NetworkManager has lost its entry, not its IP4Config
	silent     []netip.Addr // nameservers that do not answer
	connectErr error
	busBack    bool // connectErr goes away after the first time
	unitErr    error
	indexErr   error
	route      bool
	report     func(ctx context.Context, r *wire.Reporter) (wire.Outcome, error)
	setting    func() // called before nameservers are set
	probing    func() // called before a nameserver is asked

	records boot.Store
	bus     *dispatch.Bus
	mu      sync.Mutex
	did     []string // calls that change something, and what was logged
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

// once is say, unless that was said in this run.
func (w *world) once(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.did, what) {
		w.did = append(w.did, what)
	}
}

func (w *world) log(k journal.Kind, attrs ...slog.Attr) {
	var s strings.Builder
	for _, a := range attrs {
		if a.Key != "after_boot_ms" && a.Value.String() != "" {
			fmt.Fprintf(&s, " %s=%s", a.Key, a.Value)
		}
	}
	w.say("log %s%s", k.Name, s.String())
}

func newStore(t *testing.T) boot.Store {
	t.Helper()
	return boot.Store{Dir: filepath.Join(t.TempDir(), "state"), BootID: bootID}
}

func (w *world) env() *dispatch.Env {
	return &dispatch.Env{
		Store: w.records, Log: w.log, OwnAddrs: func() []netip.Addr { return addrs("10.0.0.4") },
		Index:  func(string) (int, error) { return 2, w.indexErr },
		Exists: func(ifindex int) bool { return ifindex == 2 && w.indexErr == nil },
		DefaultRoutes: func() []string {
			if w.route {
				return []string{"eth0"}
			}
			return nil
		},
	}
}

// snapshot is NetworkManager's state. Without its entry the device's IP4Config still has the nameservers.
func (w *world) snapshot() nm.Snapshot {
	s := snapshotOf(w.dev, w.dns)
	s.GlobalDNS = w.globalDNS
	if w.lost {
		s.Configuration = nil
	}
	return s
}

// snapshotOf is the state of a NetworkManager that has one device and wants these nameservers for it.
func snapshotOf(d nm.Device, dns nm.DNSConfig) nm.Snapshot {
	d.IP4DNS = dns
	s := nm.Snapshot{Devices: []nm.Device{d}}
	if !dns.Empty() {
		servers := strings.Fields(strings.Trim(fmt.Sprint(dns.Nameservers), "[]"))
		s.Configuration = []map[string]any{{"interface": "eth0", "nameservers": servers, "domains": dns.Domains}}
	}
	return s
}

// run handles one event and returns what was done, sorted: the two jobs have no
// order.
func (w *world) run(t *testing.T, action nm.Action, env ...string) ([]string, error) {
	t.Helper()
	if w.records.Dir == "" {
		w.records = newStore(t)
	}
	w.did = nil
	ev, err := nm.ParseEvent("eth0", string(action), env)
	if err != nil {
		t.Fatal(err)
	}
	reach := func(ctx context.Context, err error) error {
		if errors.Is(err, errHang) {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return err
	}
	bus := &dispatch.Bus{
		NetworkManager: func(ctx context.Context) (nm.Snapshot, error) {
			w.mu.Lock()
			s, err := w.snapshot(), w.nmErr
			w.mu.Unlock()
			if err != nil {
				return nm.Snapshot{}, reach(ctx, err)
			}
			return s, nil
		},
		LinkState: func(ctx context.Context, i int) (resolv.State, error) {
			if i != 2 {
				return resolv.State{}, nil
			}
			return w.resolved, reach(ctx, w.resolveErr)
		},
		SetNameservers: func(ctx context.Context, i int, s []netip.Addr) error {
			w.say("set nameservers %d %v", i, s)
			if w.setting != nil {
				w.setting()
			}
			var err error
			if len(w.setErrs) > 0 {
				err = reach(ctx, w.setErrs[0])
				late := errors.Is(w.setErrs[0], errHang) // carried out all the same, when nobody waits any more
				if w.setErrs = w.setErrs[1:]; err != nil && !late {
					return err
				}
			}
			w.resolved.Nameservers = nil
			for _, a := range s {
				w.resolved.Nameservers = append(w.resolved.Nameservers, resolv.Server{Addr: a})
			}
			return err
		},
		SetDomains: func(_ context.Context, i int, d []string) error {
			w.say("set domains %d %v", i, d)
			if w.domainsErr != nil {
				return w.domainsErr
			}
			w.resolved.Domains = nil
			for _, n := range d {
				w.resolved.Domains = append(w.resolved.Domains, resolv.Domain{Name: n})
			}
			return nil
		},
		FlushCaches: func(context.Context) error { w.say("flush"); return nil },
		Probe: func(ctx context.Context, a netip.Addr) (resolv.Answer, error) {
			if w.probing != nil {
				w.probing()
			}
			if slices.Contains(w.silent, a) {
				if w.setting != nil { // a test of when it is asked
					<-ctx.Done()
				}
				return resolv.Answer{}, errors.New("no answer")
			}
			return resolv.Answer{}, nil
		},
		StartUnit: func(_ context.Context, unit string) error { w.say("start %s", unit); return w.unitErr },
	}
	w.bus = bus
	shared := w.env()
	shared.Event = ev
	shared.Connect = func(limit context.Context) (*dispatch.Bus, error) {
		w.once("connect")
		if err := reach(limit, w.connectErr); err != nil {
			if w.busBack {
				w.connectErr = nil
			}
			return nil, err
		}
		return bus, nil
	}
	h := dispatch.Hook{
		CheckIn: &dispatch.CheckIn{
			Env: shared,
			Report: func(ctx context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
				w.say("report to %s, fallback %s", r.Server, r.Fallback)
				if w.report != nil {
					return w.report(ctx, r)
				}
				return wire.Outcome{Attempt: wire.Attempt{N: 1, Server: r.Server, Via: wire.ViaHealth, GoalState: wire.GoalState{Incarnation: "7", ContainerID: "c", InstanceID: "i"}}, Attempts: 1}, nil
			},
		},
	}
	err = h.Run(t.Context())
	slices.Sort(w.did)
	return w.did, err
}

// errHang stands for a far end that does not answer.
var errHang = errors.New("hang")

func azureLease() *nm.Lease {
	return &nm.Lease{
		Address: netip.MustParseAddr("10.0.0.4"), Nameservers: addrs("168.63.129.16 10.0.0.1"), Routers: addrs("10.0.0.1"),
		WireServer: netip.MustParseAddr("100.64.0.7"),
	}
}

// healthy is a machine whose NetworkManager pushes nothing to resolved.
func healthy() *world {
	return &world{
		dev:   nm.Device{Interface: "eth0", State: nm.StateActivated, Lease: azureLease()},
		dns:   nm.DNSConfig{Nameservers: addrs("168.63.129.16 10.0.0.1"), Domains: []string{"a.example"}},
		route: true,
	}
}

const (
	lease        = "DHCP4_IP_ADDRESS=10.0.0.4"
	logCheckedIn = "log checked-in wireserver=100.64.0.7 source=option-245 via=health interface=eth0 incarnation=7 attempts=1"
	logPushed    = "log nameservers-pushed interface=eth0 nameservers=168.63.129.16 10.0.0.1 domains=a.example"
	reported     = "report to 100.64.0.7, fallback 168.63.129.16"
)

var pushed = []string{"connect", "flush", logPushed, "set domains 2 [a.example]", "set nameservers 2 [168.63.129.16 10.0.0.1]"}

func TestEvents(t *testing.T) {
	checkedIn := []string{"connect", logCheckedIn, reported}
	both := append(slices.Clone(pushed), logCheckedIn, reported)
	slices.Sort(both)
	tests := []struct {
		name   string
		change func(*world)
		action nm.Action
		env    []string
		want   []string
	}{
		{name: "first lease: only the check-in", action: nm.DHCP4Change, change: func(w *world) { w.dev.State = 70 }, want: checkedIn},
		{name: "up", action: nm.Up, env: []string{lease}, want: both},
		{name: "up without a lease leaves before the bus is opened", action: nm.Up, change: func(w *world) { w.dev.Lease = nil }},
		{name: "dhcp4-change after up", action: nm.DHCP4Change, want: both},
		{name: "reapply", action: nm.Reapply, want: both},
		{name: "down with nothing of ours leaves before the bus is opened", action: nm.Down},
		{name: "NetworkManager pushes itself", action: nm.Up, env: []string{lease}, want: checkedIn, change: func(w *world) {
			w.resolved.Nameservers = []resolv.Server{{Addr: addrs("168.63.129.16")[0]}, {Addr: addrs("10.0.0.1")[0]}}
		}},
		{name: "external", action: nm.Up, env: []string{lease, "CONNECTION_EXTERNAL=1"}, want: checkedIn},
		{name: "never-default", action: nm.Up, env: []string{lease}, change: func(w *world) { w.route = false }, want: checkedIn},
		{name: "secondary interface", action: nm.DHCP4Change, want: []string{"connect"}, change: func(w *world) {
			w.dev.Lease.Routers, w.route = nil, false
		}},
		{name: "lease gone again", action: nm.DHCP4Change, change: func(w *world) { w.dev.Lease = nil }, want: []string{"connect"}},
		{name: "device gone from NetworkManager", action: nm.DHCP4Change, change: func(w *world) { w.dev = nm.Device{} }, want: []string{"connect"}},
		{name: "device gone from the kernel", action: nm.Up, env: []string{lease}, change: func(w *world) { w.indexErr = fs.ErrNotExist }},
		{name: "no option 245", action: nm.DHCP4Change, change: func(w *world) { w.dev.State, w.dev.Lease.WireServer = 70, netip.Addr{} }, want: []string{
			"connect",
			"log checked-in wireserver=168.63.129.16 source=constant via=health interface=eth0 incarnation=7 attempts=1",
			"log option-245-unusable interface=eth0 reason=the lease has no option 245 wireserver=168.63.129.16",
			"report to 168.63.129.16, fallback invalid IP",
		}},
		{name: "resolved absent", action: nm.Up, env: []string{lease}, change: func(w *world) { w.resolveErr = resolv.ErrNotRunning }, want: []string{
			"connect", logCheckedIn, "log resolved-unavailable interface=eth0 error=systemd-resolved is not available", reported,
		}},
		{name: "networkd owns the link", action: nm.Up, env: []string{lease}, change: func(w *world) { w.setErrs = slices.Repeat([]error{resolv.ErrLinkBusy}, 3) }, want: []string{
			"connect", logCheckedIn, "log nameservers-left interface=eth0 reason=systemd-networkd manages the link", reported, "set nameservers 2 [168.63.129.16 10.0.0.1]",
		}},
		{name: "a nameserver is silent", action: nm.Up, env: []string{lease}, change: func(w *world) { w.silent = addrs("10.0.0.1") }, want: sorted(both,
			"log nameserver-silent interface=eth0 nameserver=10.0.0.1 error=no answer")},
		{name: "ignore-auto-dns", action: nm.Up, env: []string{lease}, change: func(w *world) { w.dns = nm.DNSConfig{} }, want: []string{
			"connect", logCheckedIn,
			"log nameservers-left interface=eth0 reason=NetworkManager wants no nameservers for the link (ipv4.ignore-auto-dns, or no DNS configuration yet)", reported,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := healthy()
			if tt.change != nil {
				tt.change(w)
			}
			got, err := w.run(t, tt.action, tt.env...)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("did (-want +got):\n%s", diff)
			}
			// The same event again: only what is not done yet, nothing said twice.
			for range 2 {
				if got, err = w.run(t, tt.action, tt.env...); err != nil {
					t.Error(err)
				}
				for _, s := range got {
					if s != "connect" && !strings.HasPrefix(s, "set nameservers") {
						t.Errorf("did again: %s", s)
					}
				}
			}
		})
	}
}

func sorted(a []string, more ...string) []string {
	out := append(slices.Clone(a), more...)
	slices.Sort(out)
	return out
}

func TestPushAndUndo(t *testing.T) {
	undone := "log nameservers-undone interface=eth0 nameservers=168.63.129.16 10.0.0.1 reason=the link went down"
	clears := []string{"connect", "flush", undone, "set domains 2 []", "set nameservers 2 []"}
	tests := []struct {
		name   string
		change func(*world)
		want   []string
	}{
		{name: "down", want: clears, change: func(w *world) { w.dns = nm.DNSConfig{} }},
		{name: "NetworkManager is blocked", want: clears, change: func(w *world) { w.nmErr, w.route = errHang, false }},
		{name: "NetworkManager is gone", want: clears, change: func(w *world) { w.nmErr, w.route = nm.ErrNotRunning, false }},
		{name: "NetworkManager is busy, and a newer up has come", want: []string{
			"connect", "log handed-over interface=eth0 error=no answer within 500ms", "start nm-azure-checkin.service",
		}, change: func(w *world) { w.nmErr = errHang }},
		{name: "a newer up has come", want: []string{"connect"}},
		{name: "another program has changed it", want: []string{"connect"}, change: func(w *world) {
			w.dns, w.resolved.Nameservers = nm.DNSConfig{}, []resolv.Server{{Addr: addrs("9.9.9.9")[0]}}
		}},
		{name: "another program has set the domains", want: []string{"connect", "flush", undone, "set nameservers 2 []"}, change: func(w *world) {
			w.dns, w.resolved.Domains = nm.DNSConfig{}, []resolv.Domain{{Name: "b.example"}}
		}},
		{name: "the link is gone from resolved", want: []string{"connect", "set nameservers 2 []"}, change: func(w *world) {
			w.dns, w.setErrs = nm.DNSConfig{}, []error{resolv.ErrNoSuchLink}
		}},
		{name: "the device is gone", change: func(w *world) { w.indexErr = fs.ErrNotExist }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := healthy()
				if _, err := w.run(t, nm.Up, lease); err != nil {
					t.Fatal(err)
				}
				if tt.change != nil {
					tt.change(w)
				}
				start := time.Now()
				got, err := w.run(t, nm.Down)
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("did (-want +got):\n%s", diff)
				}
				if took := time.Since(start); took > 500*time.Millisecond {
					t.Errorf("took %v, NetworkManager waits 500 ms at most", took)
				}
			})
		})
	}
}

// resolved may learn of a new link later than we do.
func TestLinkNotKnownYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := healthy()
		w.setErrs = []error{resolv.ErrNoSuchLink, resolv.ErrNoSuchLink}
		got, err := w.run(t, nm.Up, lease)
		if err != nil {
			t.Error(err)
		}
		if n := strings.Count(strings.Join(got, "\n"), "set nameservers"); n != 3 {
			t.Errorf("%d tries, want 3", n)
		}
	})
}

// Whatever hangs or fails, the other job is done, and all ends in time.
func TestOneJobDoesNotSpoilTheOther(t *testing.T) {
	never := func(ctx context.Context, r *wire.Reporter) (wire.Outcome, error) {
		r.OnAttempt(wire.Attempt{N: 1, Server: r.Server, Via: wire.ViaHealth, Err: errors.New("refused")})
		<-ctx.Done()
		return wire.Outcome{Attempts: 1}, context.Cause(ctx)
	}
	failedAttempt := "log attempt-failed wireserver=100.64.0.7 via=health attempts=1 last_error=refused"
	unreadable := "log option-245-unusable interface=eth0 reason=the lease cannot be read: no answer within 700ms wireserver=168.63.129.16"
	constant := "log checked-in wireserver=168.63.129.16 source=constant via=health interface=eth0 incarnation=7 attempts=1"
	tests := []struct {
		name   string
		change func(*world)
		want   []string
		err    string
		limit  time.Duration
	}{
		{name: "WireServer away", change: func(w *world) { w.report = never }, limit: time.Second, want: sorted(pushed, failedAttempt, reported,
			"log handed-over interface=eth0 wireserver=100.64.0.7 attempts=1 last_error=refused", "start nm-azure-checkin.service")},
		{
			name: "WireServer away and no unit", change: func(w *world) { w.report, w.unitErr = never, errors.New("no such unit") }, limit: 5 * time.Second,
			want: sorted(pushed, failedAttempt, reported,
				"log given-up wireserver=100.64.0.7 attempts=1 last_error=refused hand_over_error=no such unit", "start nm-azure-checkin.service"),
			err: "check-in: not done after 5s\nhand-over: no such unit",
		},
		{
			name: "the bus hangs at first, WireServer away", change: func(w *world) { w.connectErr, w.busBack, w.report = errHang, true, never },
			limit: time.Second, want: sorted(pushed, "log attempt-failed wireserver=168.63.129.16 via=health attempts=1 last_error=refused",
				"log handed-over interface=eth0 wireserver=168.63.129.16 attempts=1 last_error=refused",
				unreadable, "report to 168.63.129.16, fallback invalid IP", "start nm-azure-checkin.service"),
		},
		{name: "resolved hangs", change: func(w *world) { w.resolveErr = errHang }, limit: time.Second, want: []string{
			"connect", logCheckedIn, "log handed-over interface=eth0 error=not done after 1s", reported, "start nm-azure-checkin.service",
		}},
		{name: "NetworkManager hangs", change: func(w *world) { w.nmErr = errHang }, limit: time.Second, want: []string{
			"connect", constant, "log handed-over interface=eth0 error=not done after 1s",
			unreadable, "report to 168.63.129.16, fallback invalid IP", "start nm-azure-checkin.service",
		}},
		{
			name: "the bus hangs", change: func(w *world) { w.connectErr = errHang }, limit: dispatch.Budget, want: []string{
				"connect", constant, "log nameservers-failed interface=eth0 error=no answer within 2s",
				unreadable, "report to 168.63.129.16, fallback invalid IP",
			},
			err: "nameservers of eth0: no answer within 2s\nhand-over: no answer within 250ms",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := healthy()
				tt.change(w)
				start := time.Now()
				got, err := w.run(t, nm.Up, lease)
				if err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("did (-want +got):\n%s", diff)
				}
				if took := time.Since(start); took > tt.limit {
					t.Errorf("took %v, want at most %v", took, tt.limit)
				}
			})
		})
	}
}

// Where nothing can take over, what is under way continues.
func TestContinuesWithoutUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := healthy()
		w.unitErr = errors.New("no such unit")
		w.report = func(ctx context.Context, r *wire.Reporter) (wire.Outcome, error) {
			select {
			case <-ctx.Done():
				return wire.Outcome{Attempts: 1}, context.Cause(ctx)
			case <-time.After(3 * time.Second):
				return wire.Outcome{Attempt: wire.Attempt{N: 1, Server: r.Server, Via: wire.ViaHealth}, Attempts: 1}, nil
			}
		}
		got, err := w.run(t, nm.Up, lease)
		if err != nil {
			t.Error(err)
		}
		want := "log checked-in wireserver=100.64.0.7 source=option-245 via=health interface=eth0 attempts=1"
		if !slices.Contains(got, want) || !slices.Contains(got, logPushed) {
			t.Errorf("did %v", got)
		}
	})
}

// Where nothing can take over, nameservers that failed are tried a second time.
func TestSecondTryWithoutUnit(t *testing.T) {
	w := healthy()
	w.unitErr, w.setErrs = errors.New("no such unit"), []error{resolv.ErrNoReply}
	if _, err := w.run(t, nm.Up, lease); err != nil {
		t.Error(err)
	}
	w.has(t, "after the second try", leaseServers)
}

// Another run has the lock: its check-in is left to it, and the unit follows it,
// in case it is killed. The nameservers are not left.
func TestLockHeld(t *testing.T) {
	w := healthy()
	w.records = newStore(t)
	unlock, err := w.records.LockCheckIn()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	got, err := w.run(t, nm.Up, lease)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(sorted(pushed, "log lock-held interface=eth0", "start nm-azure-checkin.service"), got); diff != "" {
		t.Errorf("did (-want +got):\n%s", diff)
	}
}

// Many runs for one link at once: one acts, one waits, and what that one finds
// then counts, not what it found before. The others have nothing to do.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := healthy()
		w.dev.State = 70 // a dhcp4-change, whose up is among those that leave
		w.records = newStore(t)
		holder, err := w.records.LockLink(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan []string)
		go func() {
			got, err := w.run(t, nm.DHCP4Change)
			if err != nil {
				t.Error(err)
			}
			done <- got
		}()
		synctest.Wait() // it waits for its turn, and has checked in
		third := &world{dev: w.dev, records: w.records}
		if got, err := third.run(t, nm.Up, lease); err != nil || len(got) > 0 {
			t.Errorf("the third did %v, %v; want nothing", got, err)
		}
		w.mu.Lock()
		w.dev.State = nm.StateActivated
		w.mu.Unlock()
		holder()
		if diff := cmp.Diff(sorted(pushed, logCheckedIn, reported), <-done); diff != "" {
			t.Errorf("the second did (-want +got):\n%s", diff)
		}
	})
}

// A down that finds the lock of the link held waits, and acts on what it finds then: a
// newer up.
func TestDownWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := healthy()
		w.must(t, nm.Up)
		desired := w.dns
		w.dns = nm.DNSConfig{}
		holder, err := w.records.LockLink(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan []string)
		go func() {
			got, err := w.run(t, nm.Down)
			if err != nil {
				t.Error(err)
			}
			done <- got
		}()
		synctest.Wait()
		w.mu.Lock()
		w.dns = desired
		w.mu.Unlock()
		holder()
		if diff := cmp.Diff([]string{"connect"}, <-done); diff != "" {
			t.Errorf("the down did (-want +got):\n%s", diff)
		}
		w.has(t, "after a late down", leaseServers)
	})
}

func addrs(s string) (out []netip.Addr) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParseAddr(f))
	}
	return out
}

// A push that got no answer in time may have been carried out: it stays ours, is
// changed with the lease, and removed.
func TestPushWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := healthy()
		w.setErrs = []error{errHang}
		if got, err := w.run(t, nm.Up, lease); err != nil || !slices.Contains(got, "start nm-azure-checkin.service") {
			t.Errorf("not handed over: %v, %v", got, err)
		}
		w.dev.Lease.Nameservers, w.dns.Nameservers = addrs("10.0.0.9"), addrs("10.0.0.9")
		got, err := w.run(t, nm.Up, lease)
		if err != nil || !slices.Contains(got, "set nameservers 2 [10.0.0.9]") {
			t.Errorf("another lease: %v, %v", got, err)
		}
		w.dns, w.route = nm.DNSConfig{}, false
		if got, err = w.run(t, nm.Down); err != nil || !slices.Contains(got, "set nameservers 2 []") {
			t.Errorf("down: %v, %v", got, err)
		}
	})
}

// Domains are part of the configuration: a change reaches resolved, and what resolved
// refused is tried again.
func TestDomainsChange(t *testing.T) {
	w := healthy()
	w.domainsErr = errors.New("refused")
	if got, err := w.run(t, nm.Up, lease); err != nil || !slices.Contains(got, "start nm-azure-checkin.service") {
		t.Errorf("not handed over: %v, %v", got, err)
	}
	if rec := w.records.Links()[2]; len(rec.Domains) > 0 {
		t.Errorf("record %+v, want no domains: they were refused", rec)
	}
	w.domainsErr = nil
	for _, domain := range []string{"a.example", "b.example"} {
		w.dns.Domains = []string{domain}
		if _, err := w.run(t, nm.Up, lease); err != nil {
			t.Error(err)
		}
		if !w.resolved.EqualDomains([]string{domain}) {
			t.Errorf("resolved has %v, want %s", w.resolved.Domains, domain)
		}
		if got, err := w.run(t, nm.Up, lease); err != nil || len(got) > 1 {
			t.Errorf("again: %v, %v", got, err)
		}
	}
}

// A link-local nameserver can only be asked by the link.
func TestProbeLinkLocal(t *testing.T) {
	w := healthy()
	w.dns.Nameservers = append(w.dns.Nameservers, addrs("fe80::1")...)
	w.silent = []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}
	got, err := w.run(t, nm.Up, lease)
	if want := "log nameserver-silent interface=eth0 nameserver=fe80::1%eth0 error=no answer"; err != nil || !slices.Contains(got, want) {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
}

// A nameserver that was asked at the end of the hook's second is not said to be silent: nobody waited for its answer.
func TestProbeCutShort(t *testing.T) {
	for after, silent := range map[time.Duration]bool{800 * time.Millisecond: false, 300 * time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			w := healthy()
			w.silent = addrs("10.0.0.1")
			w.setting = func() { time.Sleep(after) }
			got := strings.Join(w.must(t, nm.Up), "\n")
			if strings.Contains(got, "start ") {
				t.Errorf("asked after %v: handed over, with nothing to do", after)
			}
			if !strings.Contains(got, logPushed) || strings.Contains(got, "nameserver-silent") != silent {
				t.Errorf("asked after %v: did\n%s", after, got)
			}
		})
	}
}

// An entry that NetworkManager has lost is made up for on a reapply, and for what
// is ours; on up there may be a reason for it to be missing.
func TestLostEntry(t *testing.T) {
	w := healthy()
	w.lost = true
	got, err := w.run(t, nm.Up, lease)
	if err != nil || slices.Contains(got, "set nameservers 2 [168.63.129.16 10.0.0.1]") {
		t.Errorf("up: %v, %v", got, err)
	}
	if got, err = w.run(t, nm.Reapply, lease); err != nil || !slices.Contains(got, "set nameservers 2 [168.63.129.16 10.0.0.1]") {
		t.Errorf("reapply: %v, %v", got, err)
	}
	if got, err = w.run(t, nm.DHCP4Change, lease); err != nil || len(got) > 1 {
		t.Errorf("later: %v, %v", got, err)
	}
}
