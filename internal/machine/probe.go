package machine

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const (
	dialLimit = 2 * time.Second // the check-in's own
	// slow is when a goal state is also requested in small segments.
	slow = 700 * time.Millisecond
	// maxServers bounds the number of nameservers that are queried.
	maxServers = 16
	// publicName is looked up if neither the operator nor the lease names one. Any
	// answer is enough, also NXDOMAIN.
	publicName = "azure.microsoft.com"
)

// ErrNotAsked is the error of a query that was not needed.
var ErrNotAsked = errors.New("not asked")

// Prober has the queries over the network. Every func returns when its context ends.
type Prober struct {
	Name      string // to look up; "" for the default
	Route     func(to, from netip.Addr) (netlink.Route, error)
	Rules     func() ([]int, error)
	Dial      func(context.Context, netip.AddrPort) error
	GoalState func(context.Context, netip.Addr) (wire.GoalState, error)
	// Small requests a goal state in small segments, and waits for any answer.
	Small  func(context.Context, netip.Addr) error
	Ask    func(ctx context.Context, server netip.Addr, name string) (resolv.Answer, error)
	LookUp func(ctx context.Context, name string) (resolv.Found, error)
}

// Probe makes the queries that the checks need, in parallel.
func (s *Snapshot) Probe(ctx context.Context, p Prober) {
	if !s.Platform.Azure {
		return
	}
	to, name := s.Target().Server, s.name(p.Name)
	servers, file := s.Servers(), s.Conf.ResolvConf.Servers
	file = file[:min(len(file), libcServers)]
	probes := &s.Probes
	probes.Name, probes.Asked = name, p.Name != ""
	links := s.Kernel.Links
	g := begin(ctx, probeLimit)
	read(g, &probes.Route, func(context.Context) (Route, error) { return p.route(links, to) })
	read(g, &probes.TCP, func(ctx context.Context) (none, error) { return none{}, p.dial(ctx, to) })
	answered := make(chan struct{})
	read(g, &probes.GoalState, func(ctx context.Context) (wire.GoalState, error) {
		defer close(answered)
		return p.GoalState(ctx, to)
	})
	// If only a request in small segments is answered, packets of full size are
	// dropped on the way.
	read(g, &probes.Small, func(ctx context.Context) (none, error) {
		select {
		case <-answered:
			return none{}, ErrNotAsked
		case <-time.After(slow):
			return none{}, p.Small(ctx, to)
		}
	})
	read(g, &probes.Servers, func(ctx context.Context) ([]Reply, error) { return p.ask(ctx, servers, name), nil })
	read(g, &probes.File, func(ctx context.Context) ([]Reply, error) { return p.ask(ctx, file, name), nil })
	read(g, &probes.LookUp, func(ctx context.Context) (resolv.Found, error) { return p.LookUp(ctx, name) })
	if to != wire.DefaultAddr {
		read(g, &probes.Default, func(ctx context.Context) (wire.GoalState, error) { return p.GoalState(ctx, wire.DefaultAddr) })
	}
	if s.AllNames() != "" {
		read(g, &probes.Public, func(ctx context.Context) (resolv.Found, error) { return p.LookUp(ctx, publicName) })
	}
	g.wait()
}

// route queries the route like connect(2): first without a source address, then with
// the selected one, because routing rules may depend on it.
func (p Prober) route(links []Link, to netip.Addr) (Route, error) {
	var out Route
	out.Rules, _ = p.Rules() // empty if they cannot be read
	first, err := p.Route(to, netip.Addr{})
	r := first
	if err == nil && first.Source.IsValid() {
		r, err = p.Route(to, first.Source)
	}
	if err != nil {
		return out, err
	}
	out.Gateway, out.Source, out.Table = r.Gateway, first.Source, r.Table
	for _, l := range links {
		if l.Index == r.Index {
			out.Interface = l.Name
		}
	}
	return out, nil
}

// name returns the name to look up: the operator's, or the lease's domain, or a
// public one.
func (s *Snapshot) name(operator string) string {
	if operator != "" {
		return operator
	}
	if l := s.Lease(); l != nil {
		for _, d := range l.Domains {
			if strings.Contains(d, ".") { // resolved does not query nameservers for others
				return d
			}
		}
	}
	return publicName
}

// Servers returns the nameservers that receive the queries of programs; if there are
// none, those that should.
func (s *Snapshot) Servers() []netip.Addr {
	servers := s.Conf.ResolvConf.Servers
	if s.Resolved.Err == nil {
		servers = s.Resolved.V.State(s.Index(s.Interface)).Addrs()
	}
	servers = slices.DeleteFunc(slices.Clone(servers), IsStub)
	if len(servers) == 0 {
		servers = s.NM.V.DNSConfig(s.Interface).Nameservers
	}
	if l := s.Lease(); len(servers) == 0 && l != nil {
		servers = l.Nameservers
	}
	return servers[:min(len(servers), maxServers)]
}

// AllNames returns the interface, other than the checked one, to which
// systemd-resolved sends all queries without a more specific domain; "" if none.
func (s *Snapshot) AllNames() string {
	for _, l := range s.Kernel.Links {
		if l.Name != s.Interface && slices.Contains(s.Resolved.V.Links[l.Index].Domains, resolv.Domain{Name: ".", RouteOnly: true}) {
			return l.Name
		}
	}
	return ""
}

func (p Prober) dial(ctx context.Context, to netip.Addr) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dialLimit, NoAnswer(dialLimit))
	defer cancel()
	err := p.Dial(ctx, netip.AddrPortFrom(to, 80))
	if err != nil && (ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		return NoAnswer(dialLimit)
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e
	}
	return err
}

func (p Prober) ask(ctx context.Context, servers []netip.Addr, name string) []Reply {
	replies := make([]Reply, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			replies[i].Answer, replies[i].Err = p.Ask(ctx, s, name)
			replies[i].Server = s
		})
	}
	wg.Wait()
	return replies
}
