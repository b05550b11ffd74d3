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
	// slow is when a goal state is also asked for in small segments.
	slow = 700 * time.Millisecond
	// maxServers bounds how many nameservers are asked.
	maxServers = 16
	// publicName is asked for where neither the operator nor the lease names one.
	// Any answer will do, also that there is no such name.
	publicName = "azure.microsoft.com"
)

// ErrNotAsked is the error of a question that there was no need to ask.
var ErrNotAsked = errors.New("not asked")

// Prober asks on the network. Every func returns when its context ends.
type Prober struct {
	Name      string // to look up; "" for one that the lease suggests
	Route     func(to, from netip.Addr) (netlink.Route, error)
	Rules     func() ([]int, error)
	Dial      func(context.Context, netip.AddrPort) error
	GoalState func(context.Context, netip.Addr) (wire.GoalState, error)
	// Small asks for a goal state in small segments, and waits for any answer.
	Small  func(context.Context, netip.Addr) error
	Ask    func(ctx context.Context, server netip.Addr, name string) (resolv.Answer, error)
	LookUp func(ctx context.Context, name string) (resolv.Found, error)
}

// Probe asks on the network what the checks need, all of it side by side.
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
	// Where only a request in small segments is answered, something on the way
	// drops packets of full size.
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

// route asks as the kernel does for a connection: for a source address first,
// and again with it, since a routing rule may go by that.
func (p Prober) route(links []Link, to netip.Addr) (Route, error) {
	var out Route
	out.Rules, _ = p.Rules() // none that can be named
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

// name returns the name to ask for: the operator's, or the lease's domain, or
// one that nearly everybody can ask for.
func (s *Snapshot) name(operator string) string {
	if operator != "" {
		return operator
	}
	if l := s.Lease(); l != nil {
		for _, d := range l.Domains {
			if strings.Contains(d, ".") { // others resolved does not ask nameservers for
				return d
			}
		}
	}
	return publicName
}

// Servers returns the nameservers that programs' questions end up with; if there
// are none, those that should be.
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

// AllNames returns the interface, other than the one that is looked at, to which
// systemd-resolved sends the questions that no other takes; "" if there is none.
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
