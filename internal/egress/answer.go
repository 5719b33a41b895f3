package egress

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Answer is the response of a host.
type Answer struct {
	Status     int           // 0 when there was no answer
	Body       []byte        // at most the first KiB
	Truncated  bool          // the body was longer than that
	RetryAfter time.Duration // the pause that the host asked for; 0 if it asked for none
}

// readAnswer reads an answer and the start of its body.
func readAnswer(res *http.Response) (a Answer, err error) {
	a.Status = res.StatusCode
	if text := res.Header.Get("Retry-After"); text != "" {
		a.RetryAfter = RetryAfter(text, time.Now())
	}
	if a.Status == http.StatusSwitchingProtocols {
		return a, nil // another protocol follows, not a body: reading it might never end
	}
	if res.ContentLength == 0 {
		return a, nil
	}
	a.Body, a.Truncated, err = readBody(res.Body)
	if err != nil {
		return a, &Error{bodyReason(err), fmt.Errorf("read the answer: %w", err)}
	}
	return a, nil
}

// readBody returns the first maxKept bytes of a body. It reads up to maxRead bytes,
// because a connection can be reused only after its body was read to the end.
func readBody(r io.Reader) (start []byte, truncated bool, err error) {
	r = io.LimitReader(r, maxRead)
	start, err = io.ReadAll(io.LimitReader(r, maxKept))
	if err != nil {
		return start, false, err
	}
	rest, err := io.Copy(io.Discard, r)
	return start, rest > 0, err
}

// RetryAfter parses the Retry-After header of RFC 9110, which contains seconds or a
// date, and returns the duration from now. It returns 0 for a date that has passed
// and for malformed text.
func RetryAfter(text string, now time.Time) time.Duration {
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
