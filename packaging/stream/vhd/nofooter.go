package vhd

import "bytes"

// tailSize is how much of a file's end is searched for a footer that is not
// where it should be: enough for what a careless copy leaves behind it.
const tailSize = 64 << 10

// noFooter says what a file is whose last 512 bytes are no footer; copied is
// set if it begins with the copy of one, as dynamic VHDs do.
func (c *checker) noFooter(tail []byte, copied bool) {
	at := int64(bytes.LastIndex(tail, []byte(cookie)))
	have := int64(len(tail)) - at // bytes from the cookie to the end
	where := c.size - have
	switch {
	case c.size == 0:
		c.problem(0, rebuild, "the file is empty")
	case copied:
		c.problem(0, rebuild, "the file begins as a dynamic VHD, but the footer at its end is missing: it was cut")
	case at >= 0 && have < FooterSize:
		c.problem(where, rebuild+"\nor, since the disk itself is there: "+c.raw(where),
			"the footer is cut: the file ends after %d of its %d bytes", have, FooterSize)
	case at >= 0:
		c.problem(where, c.raw(where), "the footer is here, not in the last %d bytes: %d bytes are behind it", FooterSize, have-FooterSize)
	case c.size < FooterSize:
		c.problem(0, rebuild, "the file has %d bytes, fewer than a footer (%d)", c.size, FooterSize)
	default:
		c.problem(c.size-FooterSize, "if it is a raw disk: "+c.raw(c.size)+"\nif it was a VHD: "+rebuild,
			"there is no footer: %q instead of %q; the file is a raw disk, or a VHD that was cut", tail[len(tail)-FooterSize:][:len(cookie)], cookie)
	}
}
