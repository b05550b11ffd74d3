package lab

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Offsets in a DHCPv4 message (RFC 2131, section 2) and the least length of one that old relays let pass.
const (
	offXid     = 4
	offFlags   = 10
	offCIAddr  = 12
	offYIAddr  = 16
	offGIAddr  = 24
	offCHAddr  = 28
	offCookie  = 236
	offOptions = 240
	minLength  = 300
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

var magic = []byte{0x63, 0x82, 0x53, 0x63}

// request is what the server wants to know of a client's message.
type request struct {
	raw     []byte
	kind    byte
	mac     string
	ciaddr  netip.Addr
	options map[byte][]byte
}

func parseRequest(b []byte) (request, error) {
	if len(b) < offOptions || b[0] != 1 || !bytes.Equal(b[offCookie:offOptions], magic) {
		return request{}, errors.New("not a request of DHCP")
	}
	r := request{raw: b, options: make(map[byte][]byte)}
	r.mac = net.HardwareAddr(b[offCHAddr : offCHAddr+6]).String()
	r.ciaddr = netip.AddrFrom4([4]byte(b[offCIAddr:]))
	for rest := b[offOptions:]; len(rest) > 0 && rest[0] != optEnd; {
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
	b := make([]byte, offOptions, 512)
	b[0], b[1], b[2] = 2, 1, 6
	copy(b[offXid:], r.raw[offXid:offXid+4])
	copy(b[offFlags:], r.raw[offFlags:offFlags+2])
	copy(b[offGIAddr:], r.raw[offGIAddr:offGIAddr+4])
	copy(b[offCHAddr:], r.raw[offCHAddr:offCHAddr+16])
	if kind != typeNak {
		copy(b[offCIAddr:], r.raw[offCIAddr:offCIAddr+4])
		copy(b[offYIAddr:], addr.AsSlice())
	}
	copy(b[offCookie:], magic)
	b = append(b, optMessageType, 1, kind)
	for _, o := range options {
		b = o.append(b)
	}
	b = append(b, optEnd)
	if short := minLength - len(b); short > 0 {
		b = append(b, make([]byte, short)...)
	}
	return b
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
