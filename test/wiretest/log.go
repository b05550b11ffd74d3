package wiretest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Request is one line of a server's log: a request that was read to its end,
// and what was decided on as the answer. It is written before the answer, so that
// a client that has received the answer finds the line.
type Request struct {
	UnixNano int64       `json:"t_unix_ns"` // when its last byte had come
	Conn     int         `json:"conn"`      // the connection, counted from 1
	Remote   string      `json:"remote"`
	Method   string      `json:"method"`
	Path     string      `json:"path"`   // with the query
	Header   http.Header `json:"header"` // with Host; names in canonical form
	Body     string      `json:"body"`
	Status   int         `json:"status"`            // 0 if there was no answer
	Foreign  bool        `json:"foreign,omitempty"` // the step's
}

// ReadLog reads what a server has logged. A last line that is not complete (the
// server was killed) is left out.
func ReadLog(r io.Reader) ([]Request, error) {
	lines := bufio.NewReader(r)
	var requests []Request
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil
		}
		if err != nil {
			return requests, fmt.Errorf("wiretest: log: %w", err)
		}
		var req Request
		if err := json.Unmarshal(line, &req); err != nil {
			return requests, fmt.Errorf("wiretest: log: line %d: %w", len(requests)+1, err)
		}
		requests = append(requests, req)
	}
}
