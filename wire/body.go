package wire

import (
	"errors"
	"io"
)

const (
	// maxBody bounds a goal state, in bytes. Real ones have under 4 KiB.
	maxBody = 1 << 20
	// usualBody is room for every goal state that was seen, in bytes.
	usualBody = 16 << 10
)

// readBody reads to the end, or a byte more than maxBody. The buffer grows in one step: the steps of io.ReadAll leave
// several times as much behind, and this is to run beside others on the smallest machines.
func readBody(r io.Reader) ([]byte, error) {
	body := make([]byte, 0, usualBody)
	for len(body) <= maxBody {
		if len(body) == cap(body) {
			body = append(make([]byte, 0, maxBody+1), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}
