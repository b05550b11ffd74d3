package vhd

import "encoding/binary"

// A dynamic VHD keeps its blocks in any order, and a table of where they are.
const (
	headerCookie = "cxsparse"
	headerSize   = 1024
	noBlock      = 1<<32 - 1
	maxBlocks    = 4 << 20 // more than a VHD of 2040 GiB has
)

// blocks checks that each block of a dynamic VHD is in the file.
func (c *checker) blocks(f Footer) error {
	end := c.size - FooterSize
	at := int64(min(f.DataOffset, uint64(c.size)))
	header, err := c.read(at, headerSize)
	if err != nil {
		return err
	}
	table := binary.BigEndian.Uint64(header[16:])
	blocks := int64(binary.BigEndian.Uint32(header[28:]))
	size := int64(binary.BigEndian.Uint32(header[32:]))
	if string(header[:len(headerCookie)]) != headerCookie || size < FooterSize || size%FooterSize != 0 || blocks > maxBlocks || uint64(blocks)*uint64(size) < f.CurrentSize || f.CurrentSize == 0 || table > uint64(c.size) {
		c.missing(at, "the header of the dynamic VHD should be here, but is missing or damaged: %d blocks of %d bytes for %d bytes, with the table at %d", blocks, size, f.CurrentSize, table)
		return nil
	}
	bitmap := (size/FooterSize/8 + FooterSize - 1) / FooterSize * FooterSize
	entries, err := c.read(int64(table), 4*blocks)
	if err != nil {
		return err
	}
	for i := range blocks {
		sector := binary.BigEndian.Uint32(entries[4*i:])
		start := int64(sector) * FooterSize
		switch {
		case sector == noBlock:
		case start+bitmap+size > end:
			c.missing(start, "block %d of the dynamic VHD should be here, but the footer is at %d", i, end)
			return nil
		case uint64(i*size) >= f.CurrentSize:
			c.missing(start, "block %d of the dynamic VHD is beyond its current size, %d: the size or the table is damaged", i, f.CurrentSize)
			return nil
		}
	}
	return nil
}
