package vhd

import (
	"fmt"
	"io"
)

// What Azure demands of a disk's size. The limits of a file are those that its
// documentation gives for an upload to a managed disk (UploadSizeBytes:
// 20972032 to 35183298347520). It calls the latter 32 TiB, but the number is
// 32767 GiB, as is the largest managed disk.
const (
	MiB     = 1 << 20
	MinFile = 20*MiB + FooterSize
	MaxFile = 32767<<30 + FooterSize
)

// A Problem is one reason for Azure to refuse a file.
type Problem struct {
	Offset int64  // where in the file
	Text   string // what is there, and what should be
	Mend   string // the commands that make a file without this problem, or what to do; a line for each way
}

func (p Problem) String() string { return fmt.Sprintf("offset %d: %s", p.Offset, p.Text) }

// Check returns the reasons for Azure to refuse a file, and its footer if it
// has one. It reads the first and the last few sectors, whatever the size.
// The error is of reading. The name is for the commands that mend the file.
func Check(r io.ReaderAt, size int64, name string) (Footer, []Problem, error) {
	c := checker{size: size, name: name}
	head, err := read(r, 0, min(size, FooterSize))
	if err != nil {
		return Footer{}, nil, err
	}
	tail, err := read(r, max(0, size-tailSize), min(size, tailSize))
	if err != nil {
		return Footer{}, nil, err
	}
	is, known := sniff(head)
	f, err := ParseFooter(tail[max(0, len(tail)-FooterSize):])
	switch {
	case err != nil && known && is.magic != cookie:
		c.problem(0, is.mend(name), "the file is %s", is.what)
	case err != nil:
		c.noFooter(tail, known)
	case known && size >= 2*FooterSize && (is.magic != cookie || f.Type == Fixed):
		c.problem(0, is.unwrap(name, size-FooterSize), "the disk begins as %s: that was taken for a raw disk", is.what)
	default:
		c.footer(f)
	}
	return f, c.problems, nil
}

func read(r io.ReaderAt, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	if _, err := r.ReadAt(b, off); err != nil && err != io.EOF {
		return nil, fmt.Errorf("vhd: read %d bytes at %d: %w", n, off, err)
	}
	return b, nil
}

// A checker collects what is wrong with one file.
type checker struct {
	size     int64
	name     string
	problems []Problem
}

// problem adds a problem at an offset in the file.
func (c *checker) problem(offset int64, mend, format string, args ...any) {
	c.problems = append(c.problems, Problem{Offset: offset, Text: fmt.Sprintf(format, args...), Mend: mend})
}

// wrong adds a problem with a field of the footer.
func (c *checker) wrong(field int64, mend, format string, args ...any) {
	c.problem(c.size-FooterSize+field, mend, format, args...)
}

// footer checks the fields in their order. One command makes all of them
// right, so they share it.
func (c *checker) footer(f Footer) {
	mend := c.mend(f)
	data := uint64(c.size - FooterSize)
	if f.Version != version1 {
		c.wrong(offVersion, mend, "the version is 0x%08x, want 0x%08x", f.Version, version1)
	}
	if f.Type == Fixed && f.DataOffset != noDataOffset {
		c.wrong(offDataOffset, mend, "the data offset is 0x%016x, want all ones (0x%016x), as there is no header", f.DataOffset, uint64(noDataOffset))
	}
	if f.CurrentSize%MiB != 0 || f.CurrentSize == 0 {
		c.wrong(offCurrentSize, mend, "the current size is %d, which is %d bytes over %d MiB; want a multiple of 1 MiB (%d bytes)",
			f.CurrentSize, f.CurrentSize%MiB, f.CurrentSize/MiB, MiB)
	}
	if f.Type == Fixed && f.CurrentSize > data {
		c.wrong(offCurrentSize, rebuild, "the current size is %d, but only %d bytes are before the footer: %d are missing",
			f.CurrentSize, data, f.CurrentSize-data)
	}
	if f.Type == Fixed && f.CurrentSize < data {
		c.wrong(offCurrentSize, mend, "the current size is %d, but %d bytes are before the footer: %d too many",
			f.CurrentSize, data, data-f.CurrentSize)
	}
	if f.Type != Fixed {
		c.wrong(offType, mend, "the disk type is %s, want %s", f.Type, Fixed)
	}
	if f.Checksum != f.Sum {
		c.wrong(offChecksum, mend, "the checksum is 0x%08x, want 0x%08x", f.Checksum, f.Sum)
	}
	if f.Type == Fixed {
		c.limits(mend)
	}
}

// limits checks the size of the file, which is what is uploaded.
func (c *checker) limits(mend string) {
	if c.size < MinFile {
		c.problem(0, mend, "the file has %d bytes, want at least %d (20 MiB and the footer)", c.size, int64(MinFile))
	}
	if c.size > MaxFile {
		c.problem(0, "make the disk smaller: Azure has no larger one", "the file has %d bytes, want at most %d (32767 GiB and the footer)", c.size, int64(MaxFile))
	}
}
