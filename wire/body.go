package wire

import (
	"errors"
	"fmt"
	"io"
)

// maxBody bounds a goal state, in bytes. Real ones have under 4 KiB.
const maxBody = 1 << 20

// readBody has an answer's body read, and reads what is left of it if that went
// well, so that the connection can be used again. It keeps nothing of it: this
// is to run beside others on the smallest machines, whatever it is sent. It
// returns the error of read, and the body's own: one of the connection, or too
// much of it.
func readBody(r io.Reader, read func(io.Reader) error) (readErr, err error) {
	body := &bodyReader{LimitedReader: io.LimitedReader{R: r, N: maxBody + 1}}
	if readErr = read(body); readErr == nil {
		_, _ = io.Copy(io.Discard, body) // body remembers the error
	}
	if body.err == nil && body.N <= 0 {
		body.err = fmt.Errorf("more than the limit of %d bytes", maxBody)
	}
	return readErr, body.err
}

// bodyReader remembers why a body could not be read to its end.
type bodyReader struct {
	io.LimitedReader
	err error
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.LimitedReader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
