package vhd

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// tailSize is how much of a file's end is searched for a footer that is not
// where it should be: enough for what a careless copy leaves behind it.
const tailSize = 64 << 10

// noFooter says what a file is whose last 512 bytes are no footer; copied is
// set if it begins with the copy of one, as dynamic VHDs do.
func (c *checker) noFooter(copied bool) error {
	at := int64(bytes.LastIndex(c.tail, []byte(cookie)))
	have := int64(len(c.tail)) - at // bytes from the cookie to the end
	where := c.size - have
	// A footer that says how much is before it is no part of the disk.
	isFooter := at >= 0 && have >= offCurrentSize+8 && where > 0 && binary.BigEndian.Uint64(c.tail[at+offCurrentSize:]) == uint64(where)
	switch {
	case c.size == 0:
		c.missing(0, "the file is empty")
	case copied:
		c.missing(0, "the file begins as a dynamic VHD, but the footer at its end is missing: it was cut, or has bytes behind it")
	case isFooter:
		text := fmt.Sprintf("the footer is here, not in the last %d bytes: %s behind it", FooterSize, count(have-FooterSize, "byte is", "bytes are"))
		if have < FooterSize {
			text = fmt.Sprintf("the footer is cut: the file ends after %d of its %d bytes", have, FooterSize)
		}
		c.problem(where, c.raw(where), "%s", text)
		_, err := c.partitions(where) // what is behind the disk is no part of it
		return err
	case c.size < FooterSize:
		c.missing(0, "the file has %s, fewer than a footer (%d)", count(c.size, "byte", "bytes"), FooterSize)
	default:
		return c.rawDisk()
	}
	return nil
}

// rawDisk says what a file is that has no footer at all. Only a partition
// table that ends within the file shows that it is whole.
func (c *checker) rawDisk() error {
	at := len(c.problems)
	c.problem(c.size-FooterSize, rebuild, "there is no footer: %q instead of %q; the file is a raw disk, or a VHD that was cut",
		c.tail[len(c.tail)-FooterSize:][:len(cookie)], cookie)
	whole, err := c.partitions(c.size)
	if whole {
		c.problems[at].Fix = c.raw(c.size)
		c.problems[at].Text += "; by its partition table it is a whole raw disk"
	}
	return err
}
