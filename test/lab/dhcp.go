package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// dhcpServer is a DHCP server that sends what a test wants.
type dhcpServer struct {
	conn *ipv4.PacketConn

	mu     sync.Mutex
	leases map[string]Lease      // by MAC address, and for "" the lease of all others
	addrs  map[string]netip.Addr // given to a MAC address whose lease names none
	log    []DHCPMessage
}

// DHCPMessage is a message that the server got or sent.
type DHCPMessage struct {
	Time time.Time
	MAC  string
	Type string // DISCOVER, OFFER, REQUEST, ACK, NAK, or a number
	Addr netip.Addr
}

func startDHCP(link string) (*dhcpServer, error) {
	onLink := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var bind error
		err := c.Control(func(fd uintptr) { bind = unix.BindToDevice(int(fd), link) })
		return errors.Join(err, bind)
	}}
	conn, err := onLink.ListenPacket(context.Background(), "udp4", ":67")
	if err != nil {
		return nil, fmt.Errorf("DHCP server: %w", err)
	}
	d := &dhcpServer{
		conn: ipv4.NewPacketConn(conn), leases: map[string]Lease{"": AzureLease()}, addrs: make(map[string]netip.Addr),
	}
	go d.serve()
	return d, nil
}

// SetLease sets what the guest's NIC of that name gets from now on; an empty name is for all without a lease of their
// own.
func (d *dhcpServer) SetLease(nic string, lease Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if nic != "" {
		nic = MAC(nic)
	}
	d.leases[nic] = lease
}

// DHCPLog is every DHCP message that came or went.
func (d *dhcpServer) DHCPLog() []DHCPMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

func (d *dhcpServer) serve() {
	buf := make([]byte, 4096)
	for {
		n, _, _, err := d.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if r, err := parseRequest(append([]byte{}, buf[:n]...)); err == nil {
			d.answer(r)
		}
	}
}

func (d *dhcpServer) answer(r request) {
	lease, addr := d.lease(r.mac)
	d.note(r.mac, r.kind, r.wants())
	if lease.Silent {
		return
	}
	var kind byte
	switch r.kind {
	case typeDiscover:
		kind = typeOffer
	case typeRequest:
		kind = typeAck
		if r.wants() != addr {
			kind, lease.Options = typeNak, only(lease.Options, optServerID)
		}
	default:
		return
	}
	time.AfterFunc(lease.Delay, func() {
		d.note(r.mac, kind, addr)
		d.send(r, kind, r.reply(kind, addr, lease.Options), lease)
	})
}

// send answers from the address that the server calls itself by: a client that renews has connected its socket to it.
func (d *dhcpServer) send(r request, kind byte, b []byte, lease Lease) {
	dst := &net.UDPAddr{IP: net.IPv4bcast, Port: 68}
	if kind != typeNak && !r.ciaddr.IsUnspecified() {
		dst.IP = r.ciaddr.AsSlice()
	}
	var from *ipv4.ControlMessage
	if id := only(lease.Options, optServerID); len(id) > 0 && len(id[0].Data) == 4 {
		from = &ipv4.ControlMessage{Src: id[0].Data}
	}
	_, _ = d.conn.WriteTo(b, from, dst) // the client asks again
}

// lease is what a client gets and the address in it.
func (d *dhcpServer) lease(mac string) (Lease, netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lease, ok := d.leases[mac]
	if !ok {
		lease = d.leases[""]
	}
	if lease.Addr.IsValid() {
		return lease, lease.Addr
	}
	if _, ok := d.addrs[mac]; !ok {
		d.addrs[mac] = netip.AddrFrom4([4]byte{10, 77, 0, byte(100 + len(d.addrs))})
	}
	return lease, d.addrs[mac]
}

func (d *dhcpServer) note(mac string, kind byte, addr netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, DHCPMessage{time.Now(), mac, cmp.Or(typeNames[kind], strconv.Itoa(int(kind))), addr})
}

var typeNames = map[byte]string{typeDiscover: "DISCOVER", typeOffer: "OFFER", typeRequest: "REQUEST", typeAck: "ACK", typeNak: "NAK"}

func only(options []Option, code byte) []Option {
	return slices.DeleteFunc(slices.Clone(options), func(o Option) bool { return o.Code != code })
}
