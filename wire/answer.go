package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

const (
	// maxBody bounds the body of a 2xx answer, in bytes. Real goal states have
	// under 4 KiB, real replies to a report none.
	maxBody = 16 << 10
	// maxExcerpt bounds the part of an answer that an error quotes, in bytes.
	maxExcerpt = 128
)

var errTooLong = fmt.Errorf("longer than the limit of %d bytes", maxBody)

// suspicion is set once a server has answered a goal state request with a 2xx status
// and another document: it may be a middlebox that answers every request. It lasts
// for one Report, which is enough: the JSON endpoint is not used before attempt
// jsonFrom, so each Report has requested the goal state before.
type suspicion struct{ atomic.Bool }

// judge checks whether an answer is the WireServer's success:
//
//   - The status is 2xx.
//   - A goal state is valid.
//   - The body of a reply to a report is complete, and empty, XML or JSON; an HTML
//     page is neither. A missing body is treated like a missing answer: at worst
//     Ready is sent twice, which is harmless.
//   - The JSON endpoint needs no goal state, so a middlebox that answers everything
//     with 200 would be accepted there. Under suspicion only 201 counts, or an empty
//     body; the WireServer sends both.
func (s *suspicion) judge(path string, resp *http.Response) (gs GoalState, err error) {
	if resp.StatusCode/100 != 2 {
		return gs, newStatusError(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooLong
	}
	if path == pathGoalState {
		if err == nil {
			gs, err = parseGoalState(body)
		}
		if err != nil {
			s.Store(true)
			err = fmt.Errorf("wire: goal state: %w", err)
		}
		return gs, err
	}
	body = bytes.TrimSpace(body)
	if err == nil && len(body) > 0 {
		err = checkReply(resp.Header.Get("Content-Type"), body)
		if err == nil && path == pathProvisioning && resp.StatusCode != http.StatusCreated && s.Load() {
			err = errors.New("its goal state was none, so only 201 or an empty body counts")
		}
	}
	if err != nil {
		err = fmt.Errorf("wire: POST %s: %d %s is not the WireServer's answer: %w: %.*q",
			resp.Request.URL, resp.StatusCode, http.StatusText(resp.StatusCode), err, maxExcerpt, body)
	}
	return gs, err
}

// checkReply reports why a reply to a report, which is not empty, cannot be the
// WireServer's.
func checkReply(contentType string, body []byte) error {
	switch {
	case strings.Contains(strings.ToLower(contentType), "html"):
		return errors.New("a page")
	case body[0] == '{' || body[0] == '[':
		if !json.Valid(body) {
			return errors.New("invalid JSON")
		}
		return nil
	}
	start, err := root(newDecoder(body))
	switch strings.ToLower(start.Name.Local) {
	case "html", "head", "title", "meta", "body", "h1", "p", "div", "center", "script":
		return errors.New("a page")
	}
	return err
}

// StatusError is an answer with another status than 2xx; 3xx is one too, as
// redirects are not followed. No status is final: the host answers 400, 403,
// 404, 410, 429, 500 and 503 while it is being updated or the machine is not
// known yet, for minutes (coreos/afterburn#459), and then 200.
//
// A 403 that stays can mean that the Metadata Security Protocol is enforced for
// this VM: the host then answers only requests that the Guest Proxy Agent
// (azure-proxy-agent) has signed, and the VM has none, or it does not run.
type StatusError struct {
	Code       int
	URL        string
	Body       string        // the beginning of the answer, at most 128 bytes
	RetryAfter time.Duration // what the server asked to wait; zero if it did not
}

// Error names the URL, the status and the beginning of the body.
func (e *StatusError) Error() string {
	return bounded.Text(fmt.Sprintf("wire: %s: %d %s: %q", e.URL, e.Code, http.StatusText(e.Code), e.Body))
}

func newStatusError(resp *http.Response) *StatusError {
	e := &StatusError{
		Code:       resp.StatusCode,
		URL:        resp.Request.URL.String(),
		RetryAfter: retryAfter(resp.Header, time.Now()),
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return e // its body is the connection: it would only be waited for
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxExcerpt)) // it only explains the status
	e.Body = strings.TrimSpace(string(body))
	return e
}
