package wire

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxExcerpt bounds what an error quotes of an answer, in bytes.
const maxExcerpt = 128

// StatusError is an answer with another status than 2xx; 3xx is one too, as
// redirects are not followed. No status is final: the host answers 400, 403,
// 404, 410, 429, 500 and 503 while it is being updated or the machine is not
// known yet, for minutes (coreos/afterburn#459), and then 200.
type StatusError struct {
	Code int
	URL  string
	// Body is the beginning of the answer, at most 128 bytes.
	Body string
	// RetryAfter is what the server asked to wait; zero if it did not.
	RetryAfter time.Duration
}

// Error names the URL, the status and the beginning of the body.
func (e *StatusError) Error() string {
	return fmt.Sprintf("wire: %s: %d %s: %q", e.URL, e.Code, http.StatusText(e.Code), e.Body)
}

func newStatusError(url string, resp *http.Response) *StatusError {
	e := &StatusError{
		Code:       resp.StatusCode,
		URL:        url,
		RetryAfter: retryAfter(resp.Header, time.Now()),
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return e // its body is the connection: it would only be waited for
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxExcerpt)) // the status is the error; this only explains it
	e.Body = strings.TrimSpace(string(body))
	return e
}

// noAnswerError says how long an answer was waited for. It is the cause with
// which an attempt is cancelled that is out of time.
type noAnswerError time.Duration

func (e noAnswerError) Error() string {
	return fmt.Sprintf("no answer in %s", time.Duration(e).Round(time.Millisecond))
}
