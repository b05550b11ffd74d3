//go:build !race

// Without the race detector: a run that is killed here continues, and what keeps it from changing anything is that its store's
// directory is exchanged under it.

package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/boot"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/dispatch"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/journal"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/nm"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// TestAnyOrder draws sequences of what can happen to a link's nameservers,
// several runs at once and a fault at any call among them. Nothing that
// another program configured is changed; nothing of ours remains that is not wanted;
// and after one run of the unit the link has what the policy says.
//
//	go test ./internal/dispatch -run TestAnyOrder -rapid.checks 10000
func TestAnyOrder(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		// A bubble for each sequence: rapid ends after 24 hours, of which a sequence
		// takes minutes.
		var panicked any
		synctest.Test(t, func(*testing.T) {
			defer func() { panicked = recover() }()
			anyOrder(r, dir)
		})
		if panicked != nil {
			panic(panicked)
		}
	})
}

// model is NetworkManager, resolved and the kernel, for one link.
type model struct {
	t  *rapid.T
	mu sync.Mutex

	store boot.Store
	// NetworkManager
	active, nmHangs, nmPushes bool
	lease                     []netip.Addr
	static, ignore, never     bool
	extra                     []netip.Addr
	domains                   []string
	global                    bool
	// resolved
	resolved      string // "", "away", "hangs"
	globalServers bool
	have          []netip.Addr
	haveDomains   []string
	owner         string // of have: "", "us", "nm", "hand"
	domainsOwner  string
	// the faults of the next run, by call
	faults []string
	calls  int
}

var errFault, errKilled = errors.New("refused"), errors.New("killed")

func anyOrder(t *rapid.T, dir string) {
	m := &model{t: t, store: boot.Store{Dir: filepath.Join(dir, "state"), BootID: bootID}}
	if err := os.RemoveAll(m.store.Dir); err != nil {
		t.Fatal(err)
	}
	m.nmPushes = rapid.IntRange(0, 5).Draw(t, "NetworkManager pushes") == 5
	m.active, m.lease, m.domains = true, addrs("10.0.0.1 10.0.0.2"), []string{"a.example"}
	event := func(t *rapid.T, actions ...nm.Action) {
		m.drawFaults(t)
		if m.nmPushes {
			m.push()
		}
		if rapid.IntRange(0, 3).Draw(t, "lost") < 3 {
			m.events(t, actions...)
		}
	}
	one := func(t *rapid.T, of int, what string) bool { return rapid.IntRange(1, of).Draw(t, what) == of }
	lease := func(t *rapid.T) {
		m.lease = addrs(rapid.SampledFrom([]string{"10.0.0.1 10.0.0.2", "10.0.0.1", "10.0.0.3", "10.0.0.1 0.0.0.0", "10.0.0.2", ""}).Draw(t, "servers"))
		event(t, nm.DHCP4Change)
	}
	t.Repeat(map[string]func(*rapid.T){
		// Three times as often as the rest: most of the policy is about changes of what was pushed.
		"lease": lease, "lease again": lease, "lease once more": lease,
		"profile": func(t *rapid.T) {
			m.static, m.ignore, m.never = one(t, 8, "static"), one(t, 8, "ignore"), one(t, 8, "never")
			m.extra = addrs(rapid.SampledFrom([]string{"", "", "", "", "2001:db8::1", "10.0.0.1", "10.0.0.9"}).Draw(t, "dns"))
			m.domains = rapid.SampledFrom([][]string{nil, {"a.example"}, {"A.example", "b.example"}}).Draw(t, "domains")
			event(t, nm.Reapply)
		},
		"down": func(t *rapid.T) { m.active = one(t, 2, "late"); event(t, nm.Down) },
		"up": func(t *rapid.T) {
			m.active = true
			event(t, rapid.SampledFrom([][]nm.Action{{nm.DHCP4Change, nm.Up}, {nm.Down, nm.Up}, {nm.Up}}).Draw(t, "events")...)
		},
		"hands": func(t *rapid.T) {
			m.have, m.owner = addrs(rapid.SampledFrom([]string{"", "", "", "9.9.9.9", "9.9.9.9 10.0.0.1"}).Draw(t, "by hand")), "hand"
			if len(m.have) == 0 {
				m.owner, m.haveDomains = "", nil
			} else if rapid.Bool().Draw(t, "domains too") {
				m.haveDomains, m.domainsOwner = []string{"hand.example"}, "hand"
			}
		},
		"resolved": func(t *rapid.T) {
			m.resolved = rapid.SampledFrom([]string{"", "", "", "", "away", "hangs"}).Draw(t, "is")
			m.globalServers = one(t, 8, "global servers")
		},
		"NetworkManager": func(t *rapid.T) { m.nmHangs = one(t, 4, "hangs") },
		"global-dns":     func(t *rapid.T) { m.global = one(t, 6, "global"); event(t, nm.Up) },
		"unit":           func(t *rapid.T) { m.drawFaults(t); m.unit() },
	})
	m.nmHangs, m.resolved, m.faults, m.calls = false, "", nil, 0
	if m.nmPushes {
		m.push()
	}
	m.unit()
	m.check()
}

// drawFaults draws what goes wrong at which of the next run's calls.
func (m *model) drawFaults(t *rapid.T) {
	m.calls, m.faults = 0, nil
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		at := rapid.IntRange(0, 11).Draw(t, "at")
		for len(m.faults) <= at {
			m.faults = append(m.faults, "")
		}
		m.faults[at] = rapid.SampledFrom([]string{"killed", "killed after", "no answer", "no reply", "refused", "slow"}).Draw(t, "fault")
	}
}

// events runs the hook for each of them, at once or one after the other.
func (m *model) events(t *rapid.T, actions ...nm.Action) {
	together := rapid.Bool().Draw(t, "at once")
	var wg sync.WaitGroup
	for _, a := range actions {
		ev := nm.Event{Interface: "eth0", Action: a, DHCP4: a != nm.Down && len(m.lease) > 0}
		p := m.process(time.Minute)
		p.Event = ev
		h := dispatch.Hook{CheckIn: &dispatch.CheckIn{
			Env: p.Env,
			Report: func(context.Context, *wire.Reporter, wire.Health) (wire.Outcome, error) {
				return wire.Outcome{Attempts: 1}, nil
			},
		}}
		wg.Go(func() {
			defer p.cancel()
			_ = h.Run(p.ctx)
		})
		if !together {
			wg.Wait()
		}
	}
	wg.Wait()
}

func (m *model) unit() {
	p := m.process(10 * time.Minute)
	defer p.cancel()
	_ = p.FinishNameservers(p.ctx, func(error) {})
}

// desired is what NetworkManager wants.
func (m *model) desired() nm.DNSConfig {
	var c nm.DNSConfig
	switch {
	case m.global:
		return nm.DNSConfig{Global: true}
	case !m.active:
		return c
	case !m.static && !m.ignore:
		c.Nameservers = slices.DeleteFunc(slices.Clone(m.lease), netip.Addr.IsUnspecified)
	}
	for _, a := range m.extra {
		if !slices.Contains(c.Nameservers, a) {
			c.Nameservers = append(c.Nameservers, a)
		}
	}
	if len(c.Nameservers) > 0 {
		c.Domains = m.domains
	}
	return c
}

// snapshot is NetworkManager's state.
func (m *model) snapshot() nm.Snapshot {
	d := nm.Device{Interface: "eth0"}
	if m.active {
		d.State = nm.StateActivated
	}
	if m.active && !m.static {
		d.Lease = &nm.Lease{Nameservers: m.lease, Routers: addrs("10.0.0.1")}
	}
	s := snapshotOf(d, m.desired())
	s.GlobalDNS = m.global
	return s
}

// push is NetworkManager's own, where it pushes.
func (m *model) push() {
	if m.resolved == "" {
		m.have, m.owner, m.haveDomains, m.domainsOwner = m.desired().Nameservers, "nm", m.desired().Domains, "nm"
	}
}

// call lets a call happen, or what goes wrong with it.
func (p *process) call(ctx context.Context, changes bool, do func() error) error {
	m := p.model
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.killed {
		return errKilled
	}
	fault := ""
	if m.calls < len(m.faults) {
		fault = m.faults[m.calls]
	}
	m.calls++
	switch fault {
	case "killed", "killed after":
		if fault == "killed after" {
			_ = do()
		}
		p.kill()
		return errKilled
	case "no answer":
		_ = do()
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return context.Cause(ctx)
	case "no reply":
		if changes {
			_ = do()
		}
		return resolv.ErrNoReply
	case "refused":
		return errFault
	case "slow":
		m.mu.Unlock()
		time.Sleep(300 * time.Millisecond)
		m.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return do()
}

func (p *process) toResolved(ctx context.Context, changes bool, do func()) error {
	switch p.model.resolved {
	case "away":
		return resolv.ErrNotRunning
	case "hangs":
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return p.call(ctx, changes, func() error { do(); return nil })
}

func (p *process) toNM(ctx context.Context, do func()) error {
	if p.model.nmHangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return p.call(ctx, false, func() error { do(); return nil })
}

// process is one run of the program.
type process struct {
	*dispatch.Env
	model  *model
	ctx    context.Context
	cancel context.CancelFunc
	killed bool
}

// kill keeps the run from changing anything more; its locks end as it does.
func (p *process) kill() {
	p.killed, p.Env.Store.Dir = true, "/dev/null/killed"
	p.cancel()
}

func (m *model) process(limit time.Duration) *process {
	p := &process{model: m}
	p.ctx, p.cancel = context.WithTimeout(context.Background(), limit)
	bus := &dispatch.Bus{
		NetworkManager: func(ctx context.Context) (s nm.Snapshot, err error) {
			return s, p.toNM(ctx, func() { s = m.snapshot() })
		},
		LinkState: func(ctx context.Context, _ int) (s resolv.State, err error) {
			return s, p.toResolved(ctx, false, func() {
				for _, a := range m.have {
					s.Nameservers = append(s.Nameservers, resolv.Server{Addr: a})
				}
				for _, d := range m.haveDomains {
					s.Domains = append(s.Domains, resolv.Domain{Name: d})
				}
				if m.globalServers {
					s.Global = []resolv.Server{{Addr: addrs("8.8.8.8")[0]}}
				}
			})
		},
		SetNameservers: func(ctx context.Context, i int, servers []netip.Addr) error {
			return p.toResolved(ctx, true, func() {
				if i != 2 || len(m.have) > 0 && m.owner == "hand" {
					m.t.Errorf("set nameservers %v of link %d over %v of %s", servers, i, m.have, m.owner)
				}
				m.have, m.owner = servers, "us"
			})
		},
		SetDomains: func(ctx context.Context, i int, names []string) error {
			return p.toResolved(ctx, true, func() {
				if i != 2 || len(m.haveDomains) > 0 && m.domainsOwner == "hand" {
					m.t.Errorf("set domains %v of link %d over %v of %s", names, i, m.haveDomains, m.domainsOwner)
				}
				m.haveDomains, m.domainsOwner = names, "us"
			})
		},
		FlushCaches: func(context.Context) error { return nil },
		Probe:       func(context.Context, netip.Addr) (resolv.Answer, error) { return resolv.Answer{}, nil },
		StartUnit:   func(context.Context, string) error { return nil },
	}
	p.Env = &dispatch.Env{
		Store: m.store, Log: func(journal.Kind, ...slog.Attr) {},
		Connect:  func(context.Context) (*dispatch.Bus, error) { return bus, nil },
		Index:    func(string) (int, error) { return 2, nil },
		Exists:   func(int) bool { return true },
		OwnAddrs: func() []netip.Addr { return nil },
		DefaultRoutes: func() []string {
			if m.active && !m.never {
				return []string{"eth0"}
			}
			return nil
		},
	}
	return p
}

// check says what must be so after a run of the unit.
func (m *model) check() {
	want, lease := m.desired(), slices.DeleteFunc(slices.Clone(m.lease), netip.Addr.IsUnspecified)
	state := fmt.Sprintf("has %v %v of %q %q, NetworkManager wants %+v, record %+v", m.have, m.haveDomains, m.owner, m.domainsOwner, want, m.store.Links())
	if m.owner == "us" && len(m.have) > 0 && !same(m.have, want.Nameservers) {
		m.t.Errorf("ours is there and nobody wants it: %s", state)
	}
	if m.owner != "hand" && m.domainsOwner == "us" && slices.ContainsFunc(m.haveDomains, func(d string) bool {
		return !slices.ContainsFunc(want.Domains, func(w string) bool { return strings.EqualFold(w, d) })
	}) {
		m.t.Errorf("our domains are there and nobody wants them: %s", state)
	}
	only4 := slices.DeleteFunc(slices.Clone(want.Nameservers), netip.Addr.Is6)
	if m.active && !m.never && !m.static && !m.globalServers && len(lease) > 0 && same(only4, lease) && m.owner != "hand" && !same(m.have, want.Nameservers) {
		m.t.Errorf("the link lacks what the policy says: %s", state)
	}
}

func same(a, b []netip.Addr) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x netip.Addr) bool { return !slices.Contains(b, x) })
}
