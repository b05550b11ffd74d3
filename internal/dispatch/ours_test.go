package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// must runs one event that has to end well.
func (w *world) must(t *testing.T, action nm.Action) []string {
	t.Helper()
	got, err := w.run(t, action, lease)
	if err != nil {
		t.Error(err)
	}
	return got
}

func (w *world) has(t *testing.T, what, servers string) {
	t.Helper()
	if !w.resolved.Equal(addrs(servers)) {
		t.Errorf("%s: resolved has %v, want %q", what, w.resolved.Nameservers, servers)
	}
}

const leaseServers = "168.63.129.16 10.0.0.1"

// What was pushed stays ours while the link has no default route, while the
// profile is a static one of the same servers, and while resolved is away.
func TestOursStaysOurs(t *testing.T) {
	between := map[string]func(w *world, on bool){
		"never-default": func(w *world, on bool) { w.route = !on },
		"static": func(w *world, on bool) {
			w.dev.Lease = azureLease()
			if on {
				w.dev.Lease = nil
			}
		},
		"resolved away": func(w *world, on bool) {
			w.resolveErr = nil
			if on {
				w.resolveErr = resolv.ErrNotRunning
			}
		},
	}
	after := map[string]func(t *testing.T, w *world){
		"another lease": func(t *testing.T, w *world) {
			w.dev.Lease.Nameservers, w.dns.Nameservers = addrs("10.0.0.9"), addrs("10.0.0.9")
			w.must(t, nm.Up)
			w.has(t, "another lease", "10.0.0.9")
		},
		"ignore-auto-dns": func(t *testing.T, w *world) {
			w.dns = nm.DNSConfig{}
			w.must(t, nm.Reapply)
			w.has(t, "ignore-auto-dns", "")
		},
		"down": func(t *testing.T, w *world) {
			w.dns, w.route = nm.DNSConfig{}, false
			w.must(t, nm.Down)
			w.has(t, "down", "")
		},
	}
	for name, change := range between {
		for then, check := range after {
			t.Run(name+", "+then, func(t *testing.T) {
				w := healthy()
				w.must(t, nm.Up)
				change(w, true)
				w.must(t, nm.Reapply)
				if rec := w.records.Links()[2]; rec.State != boot.Pushed {
					t.Errorf("record %+v, want it to stay", rec)
				}
				change(w, false)
				check(t, w)
			})
		}
	}
}

// NetworkManager's own property counts, where its entries miss the global DNS
// configuration.
func TestGlobalDNS(t *testing.T) {
	w := healthy()
	w.globalDNS = true
	if got := w.must(t, nm.Up); !slices.Contains(got, "log nameservers-left interface=eth0 reason="+dispatch.GlobalDNS.Text) {
		t.Errorf("did %v", got)
	}
	w.has(t, "global-dns", "")
}

// What resolved refused is not asked, and the record names nothing.
func TestRefusedPush(t *testing.T) {
	w := healthy()
	w.setErrs, w.silent = []error{errors.New("AccessDenied")}, addrs(leaseServers)
	got := w.must(t, nm.Up)
	for _, s := range got {
		if strings.HasPrefix(s, "log nameserver-silent") || strings.HasPrefix(s, "log nameservers-pushed") {
			t.Errorf("did %s", s)
		}
	}
	if rec := w.records.Links()[2]; rec.State != boot.None {
		t.Errorf("record %+v, want none", rec)
	}
}

// An update whose servers resolved refuses: the domains that did not change stay
// ours, and are removed later.
func TestRefusedUpdate(t *testing.T) {
	w := healthy()
	w.must(t, nm.Up)
	w.dev.Lease.Nameservers, w.dns.Nameservers = addrs("10.0.0.9"), addrs("10.0.0.9")
	w.setErrs = []error{nil, errors.New("AccessDenied")} // the old ones are removed first
	w.must(t, nm.DHCP4Change)
	w.has(t, "refused", "")
	w.dns, w.route = nm.DNSConfig{}, false
	w.must(t, nm.Down)
	if len(w.resolved.Domains) > 0 || w.records.Links()[2].State != boot.None {
		t.Errorf("domains %v, record %+v; want none", w.resolved.Domains, w.records.Links()[2])
	}
}

// resolved ends while it is asked: it may have done it, so the record stays.
func TestPushWithoutReply(t *testing.T) {
	w := healthy()
	w.setErrs = []error{resolv.ErrNoReply}
	if got := w.must(t, nm.Up); !slices.Contains(got, "start "+dispatch.Unit) {
		t.Errorf("not handed over: %v", got)
	}
	if rec := w.records.Links()[2]; rec.State != boot.Pushed {
		t.Errorf("record %+v, want pushed", rec)
	}
}

// The same for the domains (found by TestAnyOrder): they may be there.
func TestDomainsWithoutReply(t *testing.T) {
	w := healthy()
	w.domainsErr = resolv.ErrNoReply
	w.must(t, nm.Up)
	if rec := w.records.Links()[2]; !slices.Equal(rec.Domains, []string{"a.example"}) {
		t.Errorf("record %+v, want it to name the domain", rec)
	}
}

// A profile without DHCP that replaces the one of the lease, with other servers: its up has no lease variables, and what
// was pushed is removed all the same.
func TestStaticAfterPush(t *testing.T) {
	w := healthy()
	w.must(t, nm.Up)
	w.dev.Lease, w.dns.Nameservers = nil, addrs("10.0.0.9")
	if _, err := w.run(t, nm.Up); err != nil {
		t.Error(err)
	}
	w.has(t, "static", "")
}

// A link that was left is recorded as that only for as long as it is.
func TestLeftNoLonger(t *testing.T) {
	w := healthy()
	config := w.dns
	w.dns = nm.DNSConfig{}
	w.must(t, nm.Up)
	if rec := w.records.Links()[2]; rec.State != boot.Left {
		t.Errorf("record %+v, want left", rec)
	}
	w.dns, w.resolved.Nameservers = config, []resolv.Server{{Addr: addrs("168.63.129.16")[0]}, {Addr: addrs("10.0.0.1")[0]}}
	w.must(t, nm.Up)
	if rec := w.records.Links()[2]; rec.State != boot.None || rec.Reason != "" {
		t.Errorf("record %+v, want none", rec)
	}
}

// What resolved refused to remove stays recorded, for the unit.
func TestRefusedUndo(t *testing.T) {
	w := healthy()
	w.must(t, nm.Up)
	w.dns, w.route, w.setErrs = nm.DNSConfig{}, false, []error{errors.New("refused")}
	if got := w.must(t, nm.Down); !slices.Contains(got, "start nm-azure-checkin.service") {
		t.Errorf("not handed over: %v", got)
	}
	if rec := w.records.Links()[2]; rec.State != boot.Pushed {
		t.Errorf("record %+v, want it to stay", rec)
	}
	w.must(t, nm.Down)
	w.has(t, "down again", "")
}

// A down never reports, although nothing was reported yet and no bus tells of a lease.
func TestNoReportOnDown(t *testing.T) {
	w := healthy()
	w.report = func(context.Context, *wire.Reporter) (wire.Outcome, error) {
		return wire.Outcome{Attempts: 1}, errors.New("refused")
	}
	w.must(t, nm.Up)
	w.has(t, "up", leaseServers)
	w.connectErr = errors.New("no such file")
	got, _ := w.run(t, nm.Down)
	if slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "report ") }) {
		t.Errorf("did %v", got)
	}
}

// Nothing is kept for a link that is gone, on down and on any other event, nor by the unit.
func TestGoneLink(t *testing.T) {
	for _, action := range []nm.Action{nm.Down, nm.DHCP4Change} {
		w := healthy()
		w.must(t, nm.Up)
		w.indexErr = fs.ErrNotExist
		if got := w.must(t, action); len(got) > 0 {
			t.Errorf("did %v", got)
		}
		left, err := os.ReadDir(w.records.Dir + "/links")
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", action, left, err)
		}
	}
	w := healthy()
	w.must(t, nm.Up)
	w.indexErr, w.route = fs.ErrNotExist, false
	env := w.env()
	env.Connect = func(context.Context) (*dispatch.Bus, error) { return w.bus, nil }
	if err := env.FinishNameservers(t.Context(), func(error) {}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(w.records.Dir + "/links"); err != nil || len(left) > 0 {
		t.Errorf("the unit: left %v, %v", left, err)
	}
}

// The unit continues until resolved answers, and then the link has its servers.
func TestFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := healthy()
		w.resolveErr = errHang
		w.must(t, nm.Up)
		w.did, w.resolveErr = nil, nil
		env := w.env()
		start, answer := time.Now(), w.bus.LinkState
		w.bus.LinkState = func(ctx context.Context, i int) (resolv.State, error) {
			if time.Since(start) < 6*time.Second {
				<-ctx.Done()
				return resolv.State{}, context.Cause(ctx)
			}
			return answer(ctx, i)
		}
		env.Connect = func(context.Context) (*dispatch.Bus, error) { return w.bus, nil }
		var waiting []string
		if err := env.FinishNameservers(t.Context(), func(err error) { waiting = append(waiting, err.Error()) }); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"nameservers of eth0: no answer within 2s"}, waiting); diff != "" {
			t.Errorf("waits for (-want +got):\n%s", diff)
		}
		w.has(t, "resolved answers", leaseServers)
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// What is not running is not waited for where nothing was pushed, and not for
// long where something was.
func TestFinishWithout(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"resolved":       func(w *world) { w.resolveErr = resolv.ErrNotRunning },
		"NetworkManager": func(w *world) { w.nmErr = nm.ErrNotRunning },
		"bus":            func(w *world) { w.connectErr = errors.New("no such file") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for pushed, limit := range map[bool]time.Duration{false: 0, true: 3 * time.Minute} {
					w := healthy()
					w.records = newStore(t)
					if pushed {
						w.must(t, nm.Up)
					}
					change(w)
					w.run(t, nm.Down) // wires the bus; does nothing
					env := w.env()
					env.Connect = func(context.Context) (*dispatch.Bus, error) { return w.bus, w.connectErr }
					start := time.Now()
					if err := env.FinishNameservers(t.Context(), func(error) {}); err != nil {
						t.Error(err)
					}
					if took := time.Since(start); took > limit {
						t.Errorf("pushed %v: took %v, want at most %v", pushed, took, limit)
					}
				}
			})
		})
	}
}

// A run that looks at the record before the lock looks again under it: of many
// at once one reports.
func TestOneReady(t *testing.T) {
	for range 30 {
		w := &world{records: newStore(t)}
		var reports atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 40 {
			wg.Go(func() {
				c := &dispatch.CheckIn{Env: w.env(), Report: func(_ context.Context, r *wire.Reporter, _ wire.Health) (wire.Outcome, error) {
					reports.Add(1)
					return wire.Outcome{Attempt: wire.Attempt{Server: r.Server, Via: wire.ViaHealth}, Attempts: 1}, nil
				}}
				<-start
				if _, err := c.Run(t.Context(), otherServer, wire.Ready(), false); err != nil && !errors.Is(err, boot.ErrLocked) && !errors.Is(err, dispatch.ErrDone) {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := reports.Load(); n != 1 {
			t.Fatalf("%d reports, want 1", n)
		}
	}
}

// An update first clears what was pushed: at any moment the record names what
// resolved has.
func TestUpdateClearsFirst(t *testing.T) {
	w := healthy()
	w.must(t, nm.Up)
	w.dev.Lease.Nameservers, w.dns.Nameservers = addrs("10.0.0.9"), addrs("10.0.0.9")
	w.must(t, nm.Up)
	var sets []string
	for _, s := range w.did {
		if strings.HasPrefix(s, "set nameservers") {
			sets = append(sets, s)
		}
	}
	if diff := cmp.Diff([]string{"set nameservers 2 [10.0.0.9]", "set nameservers 2 []"}, sets); diff != "" {
		t.Errorf("sets, sorted (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(w.records.Links()[2].Nameservers); got != fmt.Sprint([]netip.Addr{netip.MustParseAddr("10.0.0.9")}) {
		t.Errorf("record names %s", got)
	}
}

// A run that is killed at any point leaves nothing that no record names, and
// nobody waits for a nameserver that is silent.
func TestRecordFirstAndProbeLast(t *testing.T) {
	w := healthy()
	probed := false
	w.setting = func() {
		if rec, err := w.records.Link(2, "eth0"); err != nil || rec.State != boot.Pushed {
			t.Errorf("record before the push: %+v, %v", rec, err)
		}
	}
	w.dev.Lease.Nameservers, w.dns.Nameservers = addrs("10.0.0.1"), addrs("10.0.0.1")
	w.probing = func() {
		probed = true
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it is free: nothing to wait for
		end, err := w.records.LockLink(ctx, 2)
		if err != nil {
			t.Errorf("turn while a nameserver is asked: %v", err)
			return
		}
		end()
	}
	w.must(t, nm.Up)
	if !probed {
		t.Error("no nameserver was asked")
	}
}

// Where no lock can be had both jobs are done all the same.
func TestNoLock(t *testing.T) {
	w := healthy()
	w.records = newStore(t)
	if err := os.WriteFile(w.records.Dir, nil, 0o600); err != nil { // in the way of the directory
		t.Fatal(err)
	}
	got := w.must(t, nm.Up)
	for _, want := range []string{logCheckedIn, logPushed} {
		if !slices.Contains(got, want) {
			t.Errorf("did %q, want %q too", got, want)
		}
	}
	w.has(t, "without a lock", leaseServers)
}
