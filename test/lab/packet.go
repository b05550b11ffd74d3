package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// dhcpHeader is a DHCPv4 message up to its options (RFC 2131, section 2).
type dhcpHeader struct {
	Op, HType, HLen, Hops          byte
	XID                            uint32
	Secs, Flags                    uint16
	CIAddr, YIAddr, SIAddr, GIAddr [4]byte
	CHAddr                         [16]byte
	SName                          [64]byte
	File                           [128]byte
	Magic                          uint32
}

const (
	dhcpMagic = 0x63825363
	minLength = 300 // old relays let nothing shorter pass
)

// Options (RFC 2132) that the server itself deals with, and the values of option 53.
const (
	optPad         = 0
	optRequestedIP = 50
	optMessageType = 53
	optServerID    = 54
	optEnd         = 255

	typeDiscover = 1
	typeOffer    = 2
	typeRequest  = 3
	typeAck      = 5
	typeNak      = 6
)

// request is a client's message.
type request struct {
	dhcpHeader
	kind    byte
	mac     string
	ciaddr  netip.Addr
	options map[byte][]byte
}

func parseRequest(b []byte) (request, error) {
	r := request{options: make(map[byte][]byte)}
	n, err := binary.Decode(b, binary.BigEndian, &r.dhcpHeader)
	if err != nil || r.Op != 1 || r.Magic != dhcpMagic {
		return request{}, errors.New("not a request of DHCP")
	}
	r.mac, r.ciaddr = net.HardwareAddr(r.CHAddr[:6]).String(), netip.AddrFrom4(r.CIAddr)
	for rest := b[n:]; len(rest) > 0 && rest[0] != optEnd; {
		if rest[0] == optPad {
			rest = rest[1:]
			continue
		}
		if len(rest) < 2 || len(rest) < 2+int(rest[1]) {
			return request{}, fmt.Errorf("option %d is cut off", rest[0])
		}
		end := 2 + int(rest[1])
		r.options[rest[0]] = append(r.options[rest[0]], rest[2:end]...)
		rest = rest[end:]
	}
	if kind := r.options[optMessageType]; len(kind) == 1 {
		r.kind = kind[0]
	}
	return r, nil
}

// wants is the address that the client asks for, not valid if it does not.
func (r request) wants() netip.Addr {
	if b := r.options[optRequestedIP]; len(b) == 4 {
		return netip.AddrFrom4([4]byte(b))
	}
	if !r.ciaddr.IsUnspecified() {
		return r.ciaddr
	}
	return netip.Addr{}
}

// reply is the server's answer; addr is the client's address in an OFFER or ACK.
func (r request) reply(kind byte, addr netip.Addr, options []Option) []byte {
	h := dhcpHeader{Op: 2, HType: 1, HLen: 6, XID: r.XID, Flags: r.Flags, GIAddr: r.GIAddr, CHAddr: r.CHAddr, Magic: dhcpMagic}
	if kind != typeNak {
		h.CIAddr, h.YIAddr = r.CIAddr, addr.As4()
	}
	b, _ := binary.Append(nil, binary.BigEndian, h) // its size is fixed
	b = append(b, optMessageType, 1, kind)
	for _, o := range options {
		b = o.append(b)
	}
	b = append(b, optEnd)
	return append(b, make([]byte, max(0, minLength-len(b)))...)
}

// append writes the option, in pieces of at most 255 bytes (RFC 3396).
func (o Option) append(b []byte) []byte {
	data := o.Data
	for {
		n := min(len(data), 255)
		b = append(append(b, o.Code, byte(n)), data[:n]...)
		if data = data[n:]; len(data) == 0 {
			return b
		}
	}
}
