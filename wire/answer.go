package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/nm-azure-dispatch/nm-azure-dispatch/internal/bounded"
)

const (
	maxBody    = 16 << 10 // bytes of a 2xx answer; real goal states have under 4 KiB, real replies none
	maxExcerpt = 128      // bytes of an answer that an error quotes
)

// judge checks whether an answer is the WireServer's success:
//
//   - The status is 2xx.
//   - A goal state is valid.
//   - The body of a reply to a report is complete, and empty, XML or JSON; an HTML
//     page is neither. A missing body is treated like a missing answer: at worst
//     Ready is sent twice, which is harmless.
//   - The JSON endpoint needs no goal state, so a middlebox that answers everything
//     with 200 would be accepted there. Once a goal state request was answered with
//     2xx and another document, only 201 counts there, or an empty body; the
//     WireServer sends both. This is remembered for one Report, which is enough: each
//     requests goal states first, see jsonFrom.
func (f *flight) judge(path string, resp *http.Response) error {
	if resp.StatusCode/100 != 2 {
		return newStatusError(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("longer than the limit of %d bytes", maxBody)
	}
	if path == pathGoalState {
		if err == nil {
			f.GoalState, err = parseGoalState(body)
		}
		if err != nil {
			f.middlebox.Store(true)
			return fmt.Errorf("wire: goal state: %w", err)
		}
		return nil
	}
	body = bytes.TrimSpace(body)
	if err == nil && len(body) > 0 {
		err = checkReply(resp.Header.Get("Content-Type"), body)
		if err == nil && path == pathProvisioning && resp.StatusCode != http.StatusCreated && f.middlebox.Load() {
			err = errors.New("its goal state was none, so only 201 or an empty body counts")
		}
	}
	if err != nil {
		return fmt.Errorf("wire: POST %s: %d %s is not the WireServer's answer: %w: %.*q",
			resp.Request.URL, resp.StatusCode, http.StatusText(resp.StatusCode), err, maxExcerpt, body)
	}
	return nil
}

// checkReply reports why a reply that is not empty cannot be the WireServer's.
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
		RetryAfter: retryAfter(resp.Header),
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return e // its body is the connection: it would only be waited for
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxExcerpt)) // it only explains the status
	e.Body = strings.TrimSpace(string(body))
	return e
}
