package cloud

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/test/lab/internal/inside"
)

// Fault is what is wrong with a nameserver.
type Fault string

// A nameserver answers, or it does not answer at all, or with REFUSED, or over UDP only with a truncated message.
const (
	Healthy  Fault = ""
	Silent   Fault = "silent"
	Refuse   Fault = "refuse"
	Truncate Fault = "truncate"
)

// DNS is the service that controls the nameservers.
type DNS struct {
	mu     sync.Mutex
	names  map[string]netip.Addr
	faults map[netip.Addr]Fault
	log    []DNSQuery
}

// DNSQuery is a query that a nameserver got.
type DNSQuery struct {
	Time   time.Time
	Server netip.Addr
	Proto  string // udp, tcp
	Name   string
	Type   string
}

// DNSFault sets what is wrong with one of the nameservers.
type DNSFault struct {
	Server netip.Addr
	Fault  Fault
}

// DNSName makes the nameservers know a name.
type DNSName struct {
	Name string
	Addr netip.Addr
}

func startDNS(servers ...netip.Addr) (*DNS, error) {
	d := &DNS{names: make(map[string]netip.Addr), faults: make(map[netip.Addr]Fault)}
	for _, addr := range servers {
		at := netip.AddrPortFrom(addr, 53)
		packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			return nil, fmt.Errorf("nameserver: %w", err)
		}
		streams, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		if err != nil {
			return nil, fmt.Errorf("nameserver: %w", err)
		}
		go func() { _ = (&dns.Server{PacketConn: packets, Handler: d.handler(addr, "udp")}).ActivateAndServe() }()
		go func() { _ = (&dns.Server{Listener: streams, Handler: d.handler(addr, "tcp")}).ActivateAndServe() }()
	}
	return d, nil
}

// SetFault changes how a nameserver behaves from now on.
func (d *DNS) SetFault(f DNSFault, _ *inside.None) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[f.Server] = f.Fault
	return nil
}

// SetName adds or changes a name.
func (d *DNS) SetName(n DNSName, _ *inside.None) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[dns.CanonicalName(n.Name)] = n.Addr
	return nil
}

// Log is every query so far.
func (d *DNS) Log(_ inside.None, log *[]DNSQuery) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	*log = append(*log, d.log...)
	return nil
}

func (d *DNS) handler(server netip.Addr, proto string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		reply.RecursionAvailable = true
		switch fault := d.note(server, proto, query.Question[0]); {
		case fault == Silent:
			return
		case fault == Refuse:
			reply.Rcode = dns.RcodeRefused
		case fault == Truncate && proto == "udp":
			reply.Truncated = true
		default:
			d.resolve(reply)
		}
		_ = w.WriteMsg(reply) // the client asks again
	}
}

func (d *DNS) note(server netip.Addr, proto string, q dns.Question) Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, DNSQuery{
		time.Now(), server, proto, strings.TrimSuffix(q.Name, "."), dns.TypeToString[q.Qtype],
	})
	return d.faults[server]
}

// resolve answers for the names that are known; no other name exists.
func (d *DNS) resolve(reply *dns.Msg) {
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
