package lab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// DNSFault is what is wrong with a nameserver.
type DNSFault string

// A nameserver answers, or it does not answer at all, or with REFUSED, or over UDP only with a truncated message.
const (
	DNSHealthy  DNSFault = ""
	DNSSilent   DNSFault = "silent"
	DNSRefuse   DNSFault = "refuse"
	DNSTruncate DNSFault = "truncate"
)

// DNSQuery is a query that a nameserver got.
type DNSQuery struct {
	Time   time.Time
	Server netip.Addr
	Proto  string // udp, tcp
	Name   string
	Type   string
}

// dnsServers are the nameservers. They know the same names.
type dnsServers struct {
	servers []*dns.Server

	mu     sync.Mutex
	names  map[string]netip.Addr
	faults map[netip.Addr]DNSFault
	log    []DNSQuery
}

func startDNS(addrs ...string) (*dnsServers, error) {
	d := &dnsServers{names: make(map[string]netip.Addr), faults: make(map[netip.Addr]DNSFault)}
	for _, a := range addrs {
		addr, at := netip.MustParseAddr(a), net.JoinHostPort(a, "53")
		packets, err := net.ListenPacket("udp", at)
		if err != nil {
			return nil, fmt.Errorf("nameserver: %w", err)
		}
		streams, err := net.Listen("tcp", at)
		if err != nil {
			return nil, fmt.Errorf("nameserver: %w", err)
		}
		d.servers = append(d.servers,
			&dns.Server{PacketConn: packets, Handler: d.handler(addr, "udp")},
			&dns.Server{Listener: streams, Handler: d.handler(addr, "tcp")})
	}
	for _, s := range d.servers {
		go func() { _ = s.ActivateAndServe() }() // until close
	}
	return d, nil
}

func (d *dnsServers) close() {
	for _, s := range d.servers {
		if s.Listener != nil {
			_ = s.Listener.Close()
		} else {
			_ = s.PacketConn.Close()
		}
	}
}

// SetDNSFault sets what is wrong with the nameserver at an address.
func (d *dnsServers) SetDNSFault(server string, f DNSFault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[netip.MustParseAddr(server)] = f
}

// SetName makes the nameservers know a name.
func (d *dnsServers) SetName(name, addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[dns.CanonicalName(name)] = netip.MustParseAddr(addr)
}

// Queries is every query that a nameserver got.
func (d *dnsServers) Queries() []DNSQuery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

func (d *dnsServers) handler(server netip.Addr, proto string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		reply.RecursionAvailable = true
		switch fault := d.note(server, proto, query.Question[0]); {
		case fault == DNSSilent:
			return
		case fault == DNSRefuse:
			reply.Rcode = dns.RcodeRefused
		case fault == DNSTruncate && proto == "udp":
			reply.Truncated = true
		default:
			d.resolve(reply)
		}
		_ = w.WriteMsg(reply) // the client asks again
	}
}

func (d *dnsServers) note(server netip.Addr, proto string, q dns.Question) DNSFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, DNSQuery{
		time.Now(), server, proto, strings.TrimSuffix(q.Name, "."), dns.TypeToString[q.Qtype],
	})
	return d.faults[server]
}

// resolve answers for the names that are known; no other name exists.
func (d *dnsServers) resolve(reply *dns.Msg) {
	q := reply.Question[0]
	d.mu.Lock()
	addr, ok := d.names[dns.CanonicalName(q.Name)]
	d.mu.Unlock()
	head := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: 60}
	switch {
	case !ok:
		reply.Rcode = dns.RcodeNameError
	case q.Qtype == dns.TypeA && addr.Is4():
		reply.Answer = []dns.RR{&dns.A{Hdr: head, A: addr.AsSlice()}}
	case q.Qtype == dns.TypeAAAA && addr.Is6():
		reply.Answer = []dns.RR{&dns.AAAA{Hdr: head, AAAA: addr.AsSlice()}}
	}
}
