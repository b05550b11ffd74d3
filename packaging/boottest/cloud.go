package boottest

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/wiretest"
)

// Addresses of the cloud and of the guest.
const (
	wireServer = "168.63.129.16"
	metadata   = "169.254.169.254"
	gateway    = "10.0.0.1"
	guestAddr  = "10.0.0.4"
)

// KnownName is a name that only the lease's nameserver knows, and its address.
const KnownName, KnownAddr = "known.internal.cloudapp.net", "10.0.0.99"

// cloud is the far end of the guest's network: DHCP, a nameserver, the WireServer.
type cloud struct {
	world *world
	wire  *exec.Cmd // nil while it is away
	life  io.Closer
}

func newCloud(ctx context.Context, w *world) (*cloud, error) {
	c := &cloud{world: w}
	for _, args := range []string{
		"link set lo up",
		"link add br0 type bridge forward_delay 0 stp_state 0",
		"addr add " + gateway + "/24 dev br0",
		"addr add " + metadata + "/32 dev br0",
		"link set br0 up",
	} {
		if err := w.run(ctx, append([]string{"ip"}, strings.Fields(args)...)...); err != nil {
			return nil, err
		}
	}
	routes := strings.Join([]string{wireServer + "/32", gateway, metadata + "/32", gateway, "0.0.0.0/0", gateway}, ",")
	dnsmasq := w.command(context.WithoutCancel(ctx), "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file",
		"--user=root", "--no-resolv", "--no-hosts", "--bind-dynamic", "--interface=br0", "--no-ping",
		"--log-facility="+scratch+"/dnsmasq.log", "--dhcp-leasefile="+scratch+"/leases",
		"--dhcp-authoritative", "--dhcp-range="+guestAddr+","+guestAddr+",255.255.255.0,infinite",
		"--dhcp-option=option:router,"+gateway, "--dhcp-option=option:dns-server,"+wireServer,
		"--dhcp-option=option:domain-name,internal.cloudapp.net", "--dhcp-option=121,"+routes,
		"--dhcp-option-force=245,"+wireServer, // clients do not ask for it
		"--address=/"+KnownName+"/"+KnownAddr)
	if err := dnsmasq.Start(); err != nil {
		return nil, err
	}
	go func() { _ = dnsmasq.Wait() }() // it ends with the world
	return c, c.setWireServer(ctx, true)
}

// setWireServer makes the WireServer come or go. While it is away no packet to it is answered.
func (c *cloud) setWireServer(ctx context.Context, there bool) error {
	if !there {
		if err := c.world.run(ctx, "ip", "addr", "del", wireServer+"/32", "dev", "br0"); err != nil {
			return err
		}
		_ = c.life.Close()
		return c.wire.Wait()
	}
	if err := c.world.run(ctx, "ip", "addr", "add", wireServer+"/32", "dev", "br0"); err != nil {
		return err
	}
	log, err := os.OpenFile(c.world.path("wire.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c.wire = c.world.command(context.WithoutCancel(ctx), scratch+"/root"+ourDir+roleWire)
	c.wire.Stdout, c.wire.Stderr = log, os.Stderr
	if c.life, err = c.wire.StdinPipe(); err != nil {
		return err
	}
	return c.wire.Start()
}

// requests are those that the WireServer has answered.
func (c *cloud) requests() ([]wiretest.Request, error) {
	log, err := os.Open(c.world.path("wire.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return wiretest.ReadLog(log)
}

// reports are the requests that told the WireServer that the guest is ready, and were accepted.
func (c *cloud) reports() ([]wiretest.Request, error) {
	all, err := c.requests()
	return slices.DeleteFunc(all, func(r wiretest.Request) bool { return r.Method != "POST" || r.Status/100 != 2 }), err
}

// serveWire is the WireServer's process: it writes its log to standard output and ends with standard input.
func serveWire() error {
	l, err := net.Listen("tcp", wireServer+":80")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return wiretest.Serve(ctx, l, wiretest.Script{}, os.Stdout)
}
