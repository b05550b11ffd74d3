package lab

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// What the WireServer logs and plays.
type (
	WireRequest = wiretest.Request
	WireScript  = wiretest.Script
	WireStep    = wiretest.Step
)

// Addresses of the cloud: the nameservers are Constant, Gateway and Gateway6; the WireServer answers at every one.
const (
	Gateway  = "10.77.0.1"
	Gateway6 = "fd77::1"
	Constant = "168.63.129.16"
	Other    = "10.77.1.16" // of a WireServer too
)

// bridge is that to which the guest's interfaces are connected.
const bridge = "br0"

// cloudNetwork is the bridge and the addresses. The kernel may lack dummy links, so the addresses behind the gateway are
// the loopback's, and what gives the bridge a carrier before the guest is there is a cable to nowhere.
var cloudNetwork = []string{
	"link set lo up",
	"addr add " + Constant + "/32 dev lo",
	"addr add 169.254.169.254/32 dev lo",
	"addr add " + Other + "/32 dev lo",
	"link add " + bridge + " address 02:00:0a:4d:00:01 type bridge forward_delay 0 stp_state 0 mcast_snooping 0",
	"addr add " + Gateway + "/24 dev " + bridge,
	"addr add " + Gateway6 + "/64 dev " + bridge + " nodad",
	"link set " + bridge + " up",
	"link add idle0 type veth peer name idle1",
	"link set idle1 up",
	"link set idle0 master " + bridge + " up",
}

// Cloud is the side of the lab with the servers. They are in this process, with sockets in the cloud's network. The machine
// has no root of its own: what is run there are the host's programs.
type Cloud struct {
	*Machine
	*dhcpServer
	*dnsServers
	wire *wireServer
}

// startCloud makes the network and starts the servers.
func startCloud(ctx context.Context) (*Cloud, error) {
	m, err := startMachine(nil, nil)
	if err != nil {
		return nil, err
	}
	c := &Cloud{Machine: m}
	if err := c.start(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *Cloud) start(ctx context.Context) error {
	if err := c.ip(ctx, cloudNetwork...); err != nil {
		return fmt.Errorf("network of the cloud: %w", err)
	}
	return c.in(unix.CLONE_NEWNET, func() (err error) {
		if err := hasCarrier(bridge); err != nil {
			return err
		}
		if c.dhcpServer, err = startDHCP(bridge); err != nil {
			return err
		}
		if c.dnsServers, err = startDNS(Constant, Gateway, Gateway6); err != nil {
			return err
		}
		c.wire, err = startWire(WireScript{}, nil)
		return err
	})
}

func hasCarrier(link string) error {
	for {
		l, err := net.InterfaceByName(link)
		if err != nil || l.Flags&net.FlagRunning != 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *Cloud) close() {
	if c.wire != nil {
		c.wire.stop()
	}
	if c.dnsServers != nil {
		c.dnsServers.close()
	}
	if c.dhcpServer != nil {
		_ = c.dhcpServer.conn.Close()
	}
	c.stop()
}

// Requests is every request that the WireServer got.
func (c *Cloud) Requests() []WireRequest { return c.wire.requests() }

// PlayWire makes the WireServer answer by a script from now on. It cuts the connections that there are.
func (c *Cloud) PlayWire(script WireScript) error {
	c.wire.stop()
	return c.in(unix.CLONE_NEWNET, func() error {
		w, err := startWire(script, c.Requests())
		if err == nil {
			c.wire = w
		}
		return err
	})
}

// CloseWire makes the WireServer refuse connections, until PlayWire.
func (c *Cloud) CloseWire() { c.wire.stop() }

// DropWire makes packets to the WireServer's usual address vanish, or arrive again.
func (c *Cloud) DropWire(ctx context.Context, drop bool) error {
	verb := "add"
	if drop {
		verb = "del" // nobody's, and the cloud forwards nothing
	}
	return c.ip(ctx, "addr "+verb+" "+Constant+"/32 dev lo")
}

// wireServer is a WireServer with its script, and the requests to those before it.
type wireServer struct {
	*wiretest.Server
	before []WireRequest
	stop   func() // may be called again
}

func startWire(script WireScript, before []WireRequest) (*wireServer, error) {
	l, err := net.Listen("tcp4", ":80")
	if err != nil {
		return nil, fmt.Errorf("WireServer: %w", err)
	}
	w := &wireServer{Server: wiretest.New(script), before: before}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.stop = func() {
		// A child of this process that does not run its program yet has the socket too: closed, it would go on listening.
		_ = stopListening(l)
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		_ = w.Serve(ctx, l)
	}()
	return w, nil
}

func stopListening(l net.Listener) error {
	conn, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
}

func (w *wireServer) requests() []WireRequest {
	return append(w.before[:len(w.before):len(w.before)], w.Requests()...)
}
