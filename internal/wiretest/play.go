package wiretest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"
)

// apply changes a good answer into the step's.
func (s Step) apply(a answer, goal GoalState) answer {
	if s.Status != 0 {
		if s.Status/100 != 2 {
			a.body = ""
		}
		a.status = s.Status
	}
	if s.Body != nil {
		a.body = goal.expand(*s.Body)
	}
	if missing := s.BodyBytes - len(a.body); missing > 0 {
		a.body += strings.Repeat(".", missing)
	}
	header := map[string]string{}
	maps.Copy(header, a.header)
	maps.Copy(header, s.Header)
	if s.HeaderBytes > 0 {
		header["X-Filler"] = strings.Repeat(".", s.HeaderBytes)
	}
	a.header = header
	return a
}

// play sends the answer, or commits the step's fault in its place. It reports
// whether the connection can be used for another request.
func play(ctx context.Context, c net.Conn, r io.Reader, s Step, a answer) bool {
	sleep(ctx, s.Delay)
	switch {
	case s.Hang:
		_, _ = io.Copy(io.Discard, r) // ends when the client closes, or when ctx ends
		return false
	case s.Reset:
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // unsent data is dropped and Close sends RST: see SO_LINGER in socket(7)
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
	body := []byte(a.body)
	if s.Chunked {
		body = chunked(body)
	}
	body = body[:max(0, len(body)-s.Withhold)]
	if s.Trickle > 0 {
		for _, b := range body {
			w.Flush()
			if sleep(ctx, s.Trickle); ctx.Err() != nil {
				return false
			}
			if err := w.WriteByte(b); err != nil {
				return false
			}
		}
	} else {
		_, _ = w.Write(body) // Flush returns its error
	}
	return w.Flush() == nil && !s.HTTP10 && !s.CloseAfter && s.Withhold == 0
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
		fmt.Fprintf(w, "Content-Length: %d\r\n", len(a.body))
	}
	fmt.Fprint(w, "\r\n")
}

// chunked cuts a body into chunks of 100 bytes.
func chunked(body []byte) []byte {
	var b bytes.Buffer
	for len(body) > 0 {
		n := min(len(body), 100)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

// sleep waits, but no longer than ctx.
func sleep(ctx context.Context, d Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
