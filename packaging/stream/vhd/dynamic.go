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
	if string(header[:len(headerCookie)]) != headerCookie {
		c.missing(at, "there is no header of a dynamic VHD (%q)", headerCookie)
		return nil
	}
	table := binary.BigEndian.Uint64(header[16:])
	blocks := int64(binary.BigEndian.Uint32(header[28:]))
	size := int64(binary.BigEndian.Uint32(header[32:]))
	if size < FooterSize || size%FooterSize != 0 || blocks > maxBlocks || uint64(blocks)*uint64(size) < f.CurrentSize || table > uint64(c.size) {
		c.missing(at, "the header of the dynamic VHD is damaged: %d blocks of %d bytes for %d bytes, with the table at %d", blocks, size, f.CurrentSize, table)
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
		case start+bitmap+size > end+FooterSize: // some tools let the footer follow the last block too closely
			c.missing(start, "block %d of the dynamic VHD should be here, but the file ends at %d", i, c.size)
			return nil
		case uint64(i*size) >= f.CurrentSize:
			c.missing(start, "block %d of the dynamic VHD is beyond its current size, %d: the size or the table is damaged", i, f.CurrentSize)
			return nil
		}
	}
	return nil
}
