package vhd

import (
	"fmt"
	"io"
	"slices"
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

// headSize is how much of a file's start is read: enough for the partition
// table, and for the magic of every format.
const headSize = 64 << 10

// A Verdict is how bad a Problem is.
type Verdict int

const (
	Refused Verdict = iota // Azure refuses the file
	Missing                // content is missing, which nothing can fix
	Warning                // Azure takes the file, but a VM may not boot from it
)

// A Problem is one thing wrong with a file.
type Problem struct {
	Verdict Verdict
	Offset  int64  // where in the file
	Text    string // what is there, and what should be
	Fix     string // the commands that make a file without this problem, or what to do; a line for each way; may be empty for a Warning
}

func (p Problem) String() string {
	verdict := map[Verdict]string{Missing: "missing content: ", Warning: "warning: "}[p.Verdict]
	return fmt.Sprintf("%soffset %d: %s", verdict, p.Offset, p.Text)
}

// Check returns what is wrong with a file that is to be uploaded to Azure, and
// its footer if it has one. It reads both ends of the file and, of a dynamic
// VHD, the table of its blocks, whatever the size. The error is of reading.
// The name is for the commands that fix the file.
func Check(r io.ReaderAt, size int64, name string) (Footer, []Problem, error) {
	c := checker{r: r, size: size, name: name}
	var err error
	if c.head, err = c.read(0, min(size, headSize)); err != nil {
		return Footer{}, nil, err
	}
	if c.tail, err = c.read(max(0, size-tailSize), min(size, tailSize)); err != nil {
		return Footer{}, nil, err
	}
	is, known := sniff(c.head)
	f, noFooter := ParseFooter(c.tail[max(0, len(c.tail)-FooterSize):])
	switch {
	case noFooter != nil && known && is.magic != cookie:
		c.problem(0, is.fix(name), "the file is %s", is.what)
	case noFooter != nil:
		err = c.noFooter(known)
	case known && size >= 2*FooterSize && (is.magic != cookie || f.Type == Fixed):
		c.problem(0, is.unwrap(name, size-FooterSize), "the disk begins as %s that was taken for a raw disk", is.what)
	default:
		err = c.footer(f)
	}
	return f, c.result(), err
}

// A checker collects what is wrong with one file.
type checker struct {
	r          io.ReaderAt
	size       int64
	name       string
	head, tail []byte // both ends of the file
	problems   []Problem
}

func (c *checker) read(off, n int64) ([]byte, error) {
	b := make([]byte, n)
	if _, err := c.r.ReadAt(b, off); err != nil && err != io.EOF {
		return nil, fmt.Errorf("vhd: read %d bytes at %d: %w", n, off, err)
	}
	return b, nil
}

// problem adds a problem at an offset in the file.
func (c *checker) problem(offset int64, fix, format string, args ...any) {
	c.problems = append(c.problems, Problem{Offset: offset, Text: fmt.Sprintf(format, args...), Fix: fix})
}

// missing adds a problem that nothing can fix.
func (c *checker) missing(offset int64, format string, args ...any) {
	c.problems = append(c.problems, Problem{Verdict: Missing, Offset: offset, Text: fmt.Sprintf(format, args...), Fix: rebuild})
}

func (c *checker) warn(offset int64, format string, args ...any) {
	c.problems = append(c.problems, Problem{Verdict: Warning, Offset: offset, Text: fmt.Sprintf(format, args...)})
}

// result returns the problems. If content is missing, no command must make the
// file look whole.
func (c *checker) result() []Problem {
	lost := slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Verdict == Missing })
	for i := range c.problems {
		if p := &c.problems[i]; lost && p.Fix != "" {
			p.Fix = rebuild
		}
	}
	return c.problems
}

// footer checks the fields in their order. One command makes all of them
// right, so they share it.
func (c *checker) footer(f Footer) error {
	fix, data := c.fix(f), c.size-FooterSize // the footer is behind the data
	if f.Version != version1 {
		c.problem(data+offVersion, fix, "the version is 0x%08x, want 0x%08x", f.Version, version1)
	}
	if f.Type == Fixed && f.DataOffset != noDataOffset {
		c.problem(data+offDataOffset, fix, "the data offset is 0x%016x, want all ones (0x%016x), as there is no header", f.DataOffset, uint64(noDataOffset))
	}
	if f.CurrentSize%MiB != 0 || f.CurrentSize == 0 {
		c.problem(data+offCurrentSize, fix, "the current size is %d, which is %s over %d MiB; want a multiple of 1 MiB (%d bytes)",
			f.CurrentSize, count(int64(f.CurrentSize%MiB), "byte", "bytes"), f.CurrentSize/MiB, MiB)
	}
	if f.Type == Fixed && (f.CurrentSize > uint64(data) || data == 0) {
		c.missing(data+offCurrentSize, "the current size is %d, but only %s before the footer", f.CurrentSize, count(data, "byte is", "bytes are"))
	}
	if f.Type == Fixed && f.CurrentSize < uint64(data) {
		c.problem(data+offCurrentSize, fix, "the current size is %d, but %s before the footer: %d more", f.CurrentSize, count(data, "byte is", "bytes are"), uint64(data)-f.CurrentSize)
	}
	if f.Type != Fixed {
		c.problem(data+offType, fix, "the disk type is %s, want %s", f.Type, Fixed)
	}
	if f.Checksum != f.Sum {
		c.problem(data+offChecksum, fix, "the checksum is 0x%08x, want 0x%08x", f.Checksum, f.Sum)
	}
	switch {
	case f.Type == Dynamic:
		return c.blocks(f)
	case f.Type != Fixed:
		return nil
	}
	c.limits(fix)
	if data == 0 {
		return nil
	}
	_, err := c.partitions(data)
	return err
}

// limits checks the size of the file, which is what is uploaded.
func (c *checker) limits(fix string) {
	if c.size < MinFile {
		c.problem(0, fix, "the file has %d bytes, want at least %d (20 MiB and the footer)", c.size, int64(MinFile))
	}
	if c.size > MaxFile {
		c.problem(0, "make the disk smaller: Azure has no larger one", "the file has %d bytes, want at most %d (32767 GiB and the footer)", c.size, int64(MaxFile))
	}
}
