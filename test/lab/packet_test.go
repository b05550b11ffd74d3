package lab

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// message is a client's message with these options.
func message(options ...byte) []byte {
	h := dhcpHeader{Op: 1, HType: 1, HLen: 6, XID: 0x01020304, CHAddr: [16]byte{0, 0x0d, 0x3a, 1, 2, 3}, Magic: dhcpMagic}
	b, _ := binary.Append(nil, binary.BigEndian, h)
	return append(b, options...)
}

func TestParseRequest(t *testing.T) {
	tests := []struct {
		name  string
		in    []byte
		kind  byte
		wants netip.Addr
		err   string
	}{
		{name: "discover", in: message(53, 1, 1, 255), kind: typeDiscover},
		{name: "padding and an address", in: message(0, 0, 53, 1, 3, 50, 4, 10, 77, 0, 9, 255), kind: typeRequest, wants: netip.MustParseAddr("10.77.0.9")},
		{name: "no end", in: message(53, 1, 3), kind: typeRequest},
		{name: "cut off", in: message(53, 1, 3, 50, 4, 10), err: "option 50 is cut off"},
		{name: "short", in: []byte{1, 1, 6}, err: "not a request of DHCP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseRequest(tt.in)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error is %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || r.kind != tt.kind || r.wants() != tt.wants || r.mac != "00:0d:3a:01:02:03" {
				t.Errorf("got type %d of %s for %v, %v", r.kind, r.mac, r.wants(), err)
			}
		})
	}
}

func TestReply(t *testing.T) {
	r, err := parseRequest(message(53, 1, 1, 255))
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte{7}, 256)
	got := r.reply(typeOffer, netip.MustParseAddr("10.77.0.9"), Lease{}.With(245, []byte{1}, []byte{2}).With(43, long).With(80, nil).Options)
	want := []byte{53, 1, 2, 245, 1, 1, 245, 1, 2, 43, 255}
	want = append(append(want, long[:255]...), 43, 1, 7, 80, 0, 255)
	if d := cmp.Diff(want, got[240:]); d != "" {
		t.Errorf("options (-want +got):\n%s", d)
	}
	if got[4] != 1 || !bytes.Equal(got[16:20], []byte{10, 77, 0, 9}) {
		t.Errorf("header is % x", got[:34])
	}
	if n := len(r.reply(typeNak, netip.Addr{}, nil)); n != minLength {
		t.Errorf("a NAK is %d bytes long, want %d", n, minLength)
	}
}

func TestLease(t *testing.T) {
	l := Lease{}.
		WithTimes(16*time.Second).
		WithRoutes(map[string]string{"0.0.0.0/0": "10.77.0.1", "168.63.129.16/32": "10.77.0.1", "10.8.0.0/13": "10.77.0.2"}).
		WithAddrs(3, "10.77.0.1").Without(OptRebindingTime)
	want := []Option{
		{OptRouter, []byte{10, 77, 0, 1}},
		{OptLeaseTime, []byte{0, 0, 0, 16}},
		{OptRenewalTime, []byte{0, 0, 0, 8}},
		{OptClasslessRoute, []byte{0, 10, 77, 0, 1, 13, 10, 8, 10, 77, 0, 2, 32, 168, 63, 129, 16, 10, 77, 0, 1}},
	}
	byCode := cmpopts.SortSlices(func(a, b Option) bool { return a.Code < b.Code })
	if d := cmp.Diff(want, l.Options, byCode); d != "" {
		t.Errorf("options (-want +got):\n%s", d)
	}
}
