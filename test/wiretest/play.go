package wiretest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// play sends the answer, or commits the step's fault in its place. It reports
// whether the connection can be used for another request.
func play(ctx context.Context, c net.Conn, r io.Reader, s Step, a answer) bool {
	sleep(ctx, s.Delay)
	switch {
	case s.Hang:
		_, _ = io.Copy(io.Discard, r) // ends when the client closes, or with ctx
		return false
	case s.Reset:
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // Close then sends RST: see SO_LINGER in socket(7)
		}
		return false
	case s.Close:
		return false
	case s.Raw != nil:
		_, _ = io.WriteString(c, *s.Raw)
		return false
	}
	w := bufio.NewWriter(c)
	for _, status := range s.Informational {
		fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n\r\n", status, http.StatusText(status))
	}
	writeHeader(w, s, a)
	err := writeBody(ctx, w, s, a)
	return err == nil && !s.HTTP10 && !s.CloseAfter && s.Withhold == 0
}

func writeHeader(w io.Writer, s Step, a answer) {
	proto := "HTTP/1.1"
	if s.HTTP10 {
		proto = "HTTP/1.0"
	}
	fmt.Fprintf(w, "%s %d %s\r\n", proto, a.status, http.StatusText(a.status))
	for name, value := range a.header {
		fmt.Fprintf(w, "%s: %s\r\n", name, value)
	}
	switch {
	case s.Chunked:
		fmt.Fprint(w, "Transfer-Encoding: chunked\r\n")
	case !s.HTTP10:
		fmt.Fprintf(w, "Content-Length: %d\r\n", len(a.body)+a.filler)
	}
	fmt.Fprint(w, "\r\n")
}

// writeBody sends the body in pieces: single bytes if it trickles, small chunks
// if it is chunked.
func writeBody(ctx context.Context, w *bufio.Writer, s Step, a answer) error {
	length := int64(max(0, len(a.body)+a.filler-s.Withhold))
	body := io.LimitReader(io.MultiReader(strings.NewReader(a.body), dots{}), length)
	size := 32 << 10
	if s.Chunked {
		size = 100
	}
	if s.Trickle > 0 {
		size = 1
	}
	for piece := make([]byte, size); ; {
		n, err := body.Read(piece)
		if errors.Is(err, io.EOF) {
			break
		}
		if s.Trickle > 0 {
			_ = w.Flush() // the next write has its error
			sleep(ctx, s.Trickle)
		}
		if s.Chunked {
			_, err = fmt.Fprintf(w, "%x\r\n%s\r\n", n, piece[:n])
		} else {
			_, err = w.Write(piece[:n])
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	if s.Chunked && s.Withhold == 0 {
		_, _ = w.WriteString("0\r\n\r\n") // Flush has its error
	}
	return w.Flush()
}

// dots is an endless body.
type dots struct{}

func (dots) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '.'
	}
	return len(p), nil
}

// sleep waits, but no longer than ctx.
func sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}
