package wire_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
	"github.com/nm-azure-dispatch/nm-azure-dispatch/wire"
)

// network is a network in memory, for a synctest bubble, in which real sockets
// would not let time pass. HTTP on both ends is the real one.
type network struct {
	t  *testing.T
	mu sync.Mutex
	// hosts listen; an address that is in neither map refuses connections.
	hosts map[string]chan net.Conn
	// lost addresses never answer a SYN until the given time has come.
	lost  map[string]time.Time
	dials []dial
	open  int
	most  int // connections open at a time
}

// dial is what was asked of the network.
type dial struct {
	At     time.Duration // since the network was made
	Device string
	To     string
	start  time.Time
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, hosts: map[string]chan net.Conn{}, lost: map[string]time.Time{}}
}

// serve puts a server on the network, at port 80.
func (n *network) serve(at netip.Addr, script wiretest.Script) *wiretest.Server {
	conns := make(chan net.Conn)
	n.mu.Lock()
	n.hosts[at.String()+":80"] = conns
	n.mu.Unlock()
	srv := wiretest.New(script)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(ctx, &listener{conns: conns, closed: make(chan struct{})}); err != nil {
			n.t.Error(err)
		}
	}()
	n.t.Cleanup(func() { cancel(); <-done })
	return srv
}

// lose makes an address answer nothing for a while.
func (n *network) lose(at netip.Addr, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost[at.String()+":80"] = time.Now().Add(d)
}

// reporter returns a Reporter on this network.
func (n *network) reporter(server netip.Addr) *wire.Reporter {
	r := &wire.Reporter{Server: server}
	r.SetDial(n.dial)
	return r
}

func (n *network) dial(ctx context.Context, device, to string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, dial{start: time.Now(), Device: device, To: to})
	conns, lost := n.hosts[to], n.lost[to]
	n.mu.Unlock()
	if wait := time.Until(lost); wait > 0 {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("dial tcp4 %s: i/o timeout", to)
		case <-time.After(wait):
		}
	}
	if conns == nil {
		return nil, fmt.Errorf("dial tcp4 %s: %w", to, syscall.ECONNREFUSED)
	}
	client, server := net.Pipe()
	select {
	case conns <- server:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open++
	n.most = max(n.most, n.open)
	return &counted{Conn: client, n: n}, nil
}

// counted tells the network when it is closed.
type counted struct {
	net.Conn
	n    *network
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.n.mu.Lock()
		defer c.n.mu.Unlock()
		c.n.open--
	})
	return c.Conn.Close()
}

// listener is a net.Listener for connections in memory.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { close(l.closed); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }
