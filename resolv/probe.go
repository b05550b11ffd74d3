package resolv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

const (
	probeTimeout = 2 * time.Second // for one query, over UDP and TCP together
	udpTimeout   = 1 * time.Second // then the query is sent once more, as a datagram can get lost
	probeUDPSize = 1232            // avoids fragmentation, dnsflagday.net/2020
)

// ErrNoAnswer is returned if a nameserver did not answer in time.
var ErrNoAnswer = errors.New("no answer in time")

// Answer is the answer of a nameserver to one query.
type Answer struct {
	Server netip.Addr
	Rcode  int           // DNS response code, RFC 1035 section 4.1.1; any code is an answer
	RTT    time.Duration // of the exchange that counted
}

// Probe queries a nameserver for the NS records of the root zone, which any resolver
// can answer: over UDP with EDNS0, and over TCP if that answer is truncated. It takes
// at most 2 s. The error is ErrNoAnswer after that time or when ctx ends. A server that
// refuses the query has answered.
func Probe(ctx context.Context, server netip.Addr) (Answer, error) {
	return Ask(ctx, server, ".", dns.TypeNS)
}

// Ask sends one query to a nameserver in the same way as Probe. The name
// need not end in a dot; qtype is a DNS RR type.
func Ask(ctx context.Context, server netip.Addr, name string, qtype uint16) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	q := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	q.SetEdns0(probeUDPSize, false)
	a := Answer{Server: server}
	reply, rtt, err := exchange(ctx, udpTimeout, "udp", q, server)
	if errors.Is(err, ErrNoAnswer) {
		// From another port: the datagram may be lost, or the machine's own IPv6
		// address not usable yet.
		reply, rtt, err = exchange(ctx, probeTimeout, "udp", q, server)
	}
	if err == nil && reply.Truncated {
		reply, rtt, err = exchange(ctx, probeTimeout, "tcp", q, server)
	}
	if err != nil {
		return a, fmt.Errorf("resolv: nameserver %s: %w", server, err)
	}
	a.Rcode, a.RTT = reply.Rcode, rtt
	return a, nil
}

// exchange returns ErrNoAnswer after the limit or when the context ends: the library
// uses only its deadline, and applies it to dialling and reading separately.
func exchange(ctx context.Context, limit time.Duration, network string, q *dns.Msg, server netip.Addr) (reply *dns.Msg, rtt time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	deadline, _ := ctx.Deadline()
	client := &dns.Client{Net: network, UDPSize: probeUDPSize, Timeout: time.Until(deadline)}
	conn, err := client.DialContext(ctx, net.JoinHostPort(server.String(), "53"))
	if err == nil {
		defer func() { _ = conn.Close() }()
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		reply, rtt, err = client.ExchangeWithConnContext(ctx, q, conn)
	}
	if e, ok := errors.AsType[net.Error](err); err != nil && (ctx.Err() != nil || ok && e.Timeout()) {
		err = ErrNoAnswer
	}
	return reply, rtt, err
}
