package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream"
)

// verifyDigest reads the whole file; of one that is being written to, no more
// than it had at the start.
func verifyDigest(out io.Writer, f io.ReaderAt, size int64, name string, want []stream.Digest) error {
	if len(want) == 0 {
		fmt.Fprintf(out, "%s: the document has no digest for it\n", name)
		return errWrong
	}
	h := sha256.New()
	p := newProgress(os.Stderr, size)
	_, err := io.CopyBuffer(h, io.TeeReader(io.NewSectionReader(f, 0, size), p), make([]byte, 1<<20))
	p.done()
	if err != nil {
		return plainError(name, err)
	}
	have := hex.EncodeToString(h.Sum(nil))
	for _, d := range want {
		if d.Sha256 == have {
			fmt.Fprintf(out, "%s: ok: sha256 %s is %s, release %s\n", name, have, printable(d.Place), printable(d.Release))
			return nil
		}
	}
	fmt.Fprintf(out, "%s: the sha256 is %s: the file was changed or cut, or is of another build; want\n", name, have)
	for _, d := range want {
		fmt.Fprintf(out, "    %s, which is %s\n", d.Sha256, printable(d.Place))
	}
	return errWrong
}

// A progress counts what is read and, on a terminal, says how much that is,
// once a second.
type progress struct {
	w           io.Writer // nil: not a terminal
	size, read  int64
	start, last time.Time
}

func newProgress(f *os.File, size int64) *progress {
	p := &progress{size: size, start: time.Now(), last: time.Now()}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.w = f
	}
	return p
}

func (p *progress) Write(b []byte) (int, error) {
	p.read += int64(len(b))
	if p.w != nil && time.Since(p.last) >= time.Second {
		p.last = time.Now()
		left := time.Duration(float64(p.size-p.read) / float64(p.read) * float64(time.Since(p.start))).Round(time.Second)
		line := fmt.Sprintf("sha256: %d %% of %.1f GiB, %v left", p.read*100/p.size, float64(p.size)/(1<<30), left)
		fmt.Fprintf(p.w, "\r%-60s", line)
	}
	return len(b), nil
}

// done leaves the line empty.
func (p *progress) done() {
	if p.w != nil && p.last != p.start {
		fmt.Fprintf(p.w, "\r%-60s\r", "")
	}
}

// printable is s without control characters, which a terminal would obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
