package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/netlink"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

const (
	// slow is when a goal state is also requested in small segments.
	slow = 700 * time.Millisecond
	// smallSegment is the TCP segment size that every path accepts, RFC 9293 section 3.7.1.
	smallSegment = 536
	// maxServers bounds the number of nameservers that are queried; libcServers is how
	// many of resolv.conf libc reads, MAXNS.
	maxServers, libcServers = 16, 3
	// publicName is looked up if neither the operator nor the lease names one. Any
	// answer is enough, also NXDOMAIN.
	publicName = "azure.microsoft.com"
)

// ErrNotAsked is the error of a query that was not needed.
var ErrNotAsked = errors.New("not asked")

// Probes are the results of the queries over the network.
type Probes struct {
	Route     Seen[Route]          // to the WireServer
	GoalState Seen[wire.GoalState] // from the WireServer
	Small     Seen[struct{}]       // whether it answers in small segments; queried if it is slow
	Default   Seen[wire.GoalState] // from the default address; queried if the lease names another
	Servers   Seen[[]Reply]        // of each nameserver in use
	File      Seen[[]Reply]        // of each nameserver in resolv.conf, queried like libc does
	Name      string               // the name that was looked up
	Asked     bool                 // the operator named it
	LookUp    Seen[resolv.Found]   // of Name, by systemd-resolved
	Public    Seen[resolv.Found]   // of a public name; asked if another link takes all names
}

// Unreached is why no connection to the WireServer was made; nil if one was.
func (p *Probes) Unreached() error {
	if e, ok := errors.AsType[*net.OpError](p.GoalState.Err); ok && e.Op == "dial" {
		return e.Err
	}
	return nil
}

// Reply is the answer of a nameserver.
type Reply struct {
	resolv.Answer
	Err error
}

// Route is the kernel's route to an address.
type Route struct {
	netlink.Route
	Interface string
}

// queryNetwork makes the queries that the checks need, in parallel.
func (s *Snapshot) queryNetwork(ctx context.Context, o Options, bus Seen[*dbus.Conn]) {
	ctx, cancel := within(ctx, networkLimit)
	defer cancel()
	to, name, servers, p := s.Target().Server, s.name(o.Name), s.servers(), &s.Probes
	p.Name, p.Asked = name, o.Name != ""
	file := s.Conf.ResolvConf.Servers
	file = file[:min(len(file), libcServers)]
	goalState := func(ctx context.Context, server netip.Addr) (wire.GoalState, error) {
		return (&wire.Reporter{Server: server, UserAgent: o.UserAgent}).FetchGoalState(ctx)
	}
	lookUp := func(name string) func(context.Context, *dbus.Conn) (resolv.Found, error) {
		return func(ctx context.Context, conn *dbus.Conn) (resolv.Found, error) {
			return resolv.LookUp(ctx, conn, name)
		}
	}
	answered := make(chan struct{})
	queries := []func(){
		read(ctx, &p.Route, func(context.Context) (Route, error) { return s.route(to) }),
		read(ctx, &p.GoalState, func(ctx context.Context) (wire.GoalState, error) {
			defer close(answered)
			return goalState(ctx, to)
		}),
		// If only a request in small segments is answered, packets of full size are
		// dropped on the way.
		read(ctx, &p.Small, func(ctx context.Context) (none struct{}, err error) {
			select {
			case <-answered:
				return none, ErrNotAsked
			case <-time.After(slow):
				return none, askSmall(ctx, to)
			}
		}),
		read(ctx, &p.Servers, func(ctx context.Context) ([]Reply, error) { return ask(ctx, servers, name), nil }),
		read(ctx, &p.File, func(ctx context.Context) ([]Reply, error) { return ask(ctx, file, name), nil }),
		call(ctx, bus, &p.LookUp, lookUp(name)),
	}
	if to != wire.DefaultAddr {
		queries = append(queries, read(ctx, &p.Default, func(ctx context.Context) (wire.GoalState, error) {
			return goalState(ctx, wire.DefaultAddr)
		}))
	}
	if s.AllNames() != "" {
		queries = append(queries, call(ctx, bus, &p.Public, lookUp(publicName)))
	}
	wait(queries...)
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

// servers returns the nameservers that receive the queries of programs; if there are
// none, those that should.
func (s *Snapshot) servers() []netip.Addr {
	servers := s.Conf.ResolvConf.Servers
	if s.Resolved.Err == nil {
		servers = s.Resolved.V.State(s.Index(s.Interface)).Addrs()
	}
	servers = slices.DeleteFunc(slices.Clone(servers), IsStub)
	if len(servers) == 0 {
		servers = s.LinkView(s.Interface).DNS.Nameservers
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

// route queries the route like connect(2): first without a source address, then with
// the selected one, because routing rules may depend on it.
func (s *Snapshot) route(to netip.Addr) (Route, error) {
	var r Route
	var err error
	r.Route, err = netlink.Lookup(to, netip.Addr{})
	if source := r.Source; err == nil && source.IsValid() {
		r.Route, err = netlink.Lookup(to, source)
		r.Source = source
	}
	for _, l := range s.Kernel.Links {
		if l.Index == r.Index {
			r.Interface = l.Name
		}
	}
	return r, err
}

func ask(ctx context.Context, servers []netip.Addr, name string) []Reply {
	replies := make([]Reply, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { replies[i].Answer, replies[i].Err = resolv.Ask(ctx, s, name, dns.TypeA) })
	}
	wg.Wait()
	return replies
}

// askSmall requests a goal state in small segments, and waits for the beginning of an
// answer.
func askSmall(ctx context.Context, server netip.Addr) error {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, smallSegment) // valid on every path
		})
	}}
	conn, err := d.DialContext(ctx, "tcp4", netip.AddrPortFrom(server, 80).String())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	const request = "GET /machine/?comp=goalstate HTTP/1.1\r\nHost: %s\r\nx-ms-version: 2012-11-30\r\nConnection: close\r\n\r\n"
	if _, err = fmt.Fprintf(conn, request, server); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, len("HTTP/1.1 200")))
	return err
}
