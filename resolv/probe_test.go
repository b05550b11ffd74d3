package resolv_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/resolv"
)

// serve answers on port 53 of a loopback address, over UDP and TCP, until the
// test ends.
func serve(t *testing.T, addr string, h dns.HandlerFunc) netip.Addr {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must run this as root")
		}
		t.Skip("only root can listen on port 53")
	}
	pc, err := net.ListenPacket("udp", addr+":53")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr+":53")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: h}, {Listener: l, Handler: h}} {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		go func() { _ = s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return netip.MustParseAddr(addr)
}

func TestProbe(t *testing.T) {
	reply := func(w dns.ResponseWriter, q *dns.Msg, change func(*dns.Msg)) {
		m := new(dns.Msg).SetReply(q)
		if change != nil {
			change(m)
		}
		_ = w.WriteMsg(m)
	}
	tests := []struct {
		name, addr string
		handler    dns.HandlerFunc
		want       resolv.Answer
	}{
		{name: "answers", addr: "127.53.0.1", handler: func(w dns.ResponseWriter, q *dns.Msg) {
			reply(w, q, func(m *dns.Msg) { m.SetEdns0(1232, false) })
		}},
		{name: "refuses", addr: "127.53.0.2", handler: func(w dns.ResponseWriter, q *dns.Msg) {
			reply(w, q, func(m *dns.Msg) { m.Rcode = dns.RcodeRefused })
		}, want: resolv.Answer{Rcode: dns.RcodeRefused}},
		{name: "cut over UDP, whole over TCP", addr: "127.53.0.3", handler: func(w dns.ResponseWriter, q *dns.Msg) {
			_, udp := w.RemoteAddr().(*net.UDPAddr)
			reply(w, q, func(m *dns.Msg) {
				if m.Truncated = udp; !udp {
					m.Rcode = dns.RcodeServerFailure
				}
			})
		}, want: resolv.Answer{Rcode: dns.RcodeServerFailure}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Server = serve(t, tt.addr, tt.handler)
			got, err := resolv.Probe(t.Context(), tt.want.Server)
			if err != nil {
				t.Fatal(err)
			}
			if got.RTT <= 0 {
				t.Errorf("RTT %v", got.RTT)
			}
			if got.RTT = 0; got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestProbeSilent(t *testing.T) {
	silent := serve(t, "127.53.0.4", func(dns.ResponseWriter, *dns.Msg) {})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a, err := resolv.Probe(ctx, silent); !errors.Is(err, resolv.ErrNoAnswer) || err.Error() != "resolv: nameserver 127.53.0.4: no answer in time" {
		t.Errorf("got %+v, %v", a, err)
	}
	// Nobody listens there: the kernel says so, and it is no matter of time.
	if a, err := resolv.Probe(t.Context(), netip.MustParseAddr("127.53.0.5")); err == nil || errors.Is(err, resolv.ErrNoAnswer) {
		t.Errorf("got %+v, %v from nobody", a, err)
	}
}

// A question by name: what doctor asks.
func TestAsk(t *testing.T) {
	asked := make(chan string, 1)
	addr := serve(t, "127.53.0.6", func(w dns.ResponseWriter, q *dns.Msg) {
		asked <- q.Question[0].String()
		_ = w.WriteMsg(new(dns.Msg).SetReply(q))
	})
	if _, err := resolv.Ask(t.Context(), addr, "a.example", dns.TypeA); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != ";a.example.\tIN\t A" {
		t.Errorf("asked %q", got)
	}
}

// A datagram that is lost is sent again, within the time of one query.
func TestProbeLostDatagram(t *testing.T) {
	var n atomic.Int32
	addr := serve(t, "127.53.0.7", func(w dns.ResponseWriter, q *dns.Msg) {
		if n.Add(1) > 1 {
			_ = w.WriteMsg(new(dns.Msg).SetReply(q))
		}
	})
	if _, err := resolv.Probe(t.Context(), addr); err != nil || n.Load() != 2 {
		t.Errorf("%v after %d datagrams", err, n.Load())
	}
}
