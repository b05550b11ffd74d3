// Package vhd says whether Azure takes a file as a disk: a fixed VHD, which
// is the disk's content with a footer of 512 bytes behind it, of a size that
// Azure allows.
//
// The footer is described in Microsoft's "Virtual Hard Disk Image Format
// Specification". All its numbers are big-endian.
package vhd

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
)

// FooterSize is how long a footer is.
const FooterSize = 512

// Where the fields are in the footer.
const (
	offCookie      = 0
	offVersion     = 12
	offDataOffset  = 16
	offCurrentSize = 48
	offType        = 60
	offChecksum    = 64
)

// What Azure wants in them.
const (
	cookie       = "conectix"
	version1     = 0x00010000
	noDataOffset = 1<<64 - 1
)

// A Type is how a VHD keeps its content.
type Type uint32

// The types of the specification. Azure takes Fixed only.
const (
	Fixed        Type = 2
	Dynamic      Type = 3
	Differencing Type = 4
)

func (t Type) String() string {
	name := map[Type]string{Fixed: "fixed", Dynamic: "dynamic", Differencing: "differencing"}[t]
	return fmt.Sprintf("%d (%s)", uint32(t), cmp.Or(name, "unknown"))
}

// A Footer holds those fields of a footer that Azure looks at.
type Footer struct {
	Version     uint32
	DataOffset  uint64
	CurrentSize uint64
	Type        Type
	Checksum    uint32 // as it is in the footer
	Sum         uint32 // as it should be
}

// ParseFooter decodes a footer. It fails only on what is none.
func ParseFooter(b []byte) (Footer, error) {
	if len(b) != FooterSize {
		return Footer{}, fmt.Errorf("vhd: footer of %d bytes, want %d", len(b), FooterSize)
	}
	if string(b[offCookie:offCookie+len(cookie)]) != cookie {
		return Footer{}, errors.New("vhd: no footer: the cookie is not there")
	}
	return Footer{
		Version:     binary.BigEndian.Uint32(b[offVersion:]),
		DataOffset:  binary.BigEndian.Uint64(b[offDataOffset:]),
		CurrentSize: binary.BigEndian.Uint64(b[offCurrentSize:]),
		Type:        Type(binary.BigEndian.Uint32(b[offType:])),
		Checksum:    binary.BigEndian.Uint32(b[offChecksum:]),
		Sum:         checksum(b),
	}, nil
}

// checksum is the complement of the sum of all bytes but the checksum's own.
func checksum(b []byte) uint32 {
	var sum uint32
	for i, c := range b {
		if i < offChecksum || i >= offChecksum+4 {
			sum += uint32(c)
		}
	}
	return ^sum
}
