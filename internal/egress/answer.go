package egress

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Answer is what a host answered.
type Answer struct {
	Status     int           // 0 when there was no answer
	Body       []byte        // at most the first KiB
	Truncated  bool          // the body was longer than that
	RetryAfter time.Duration // the pause that the host asked for; 0: none
}

// readAnswer reads as much of an answer as is kept, and its body to the end when
// that is near.
func readAnswer(res *http.Response) (a Answer, err error) {
	a.Status = res.StatusCode
	a.RetryAfter = RetryAfter(res.Header.Get("Retry-After"), time.Now())
	if a.Status == http.StatusSwitchingProtocols {
		return a, nil // what follows is not a body: to read it could take for ever
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

// readBody returns the start of a body. It reads on to the end if that is near,
// so that the connection can be reused.
func readBody(r io.Reader) (start []byte, truncated bool, err error) {
	r = io.LimitReader(r, maxRead)
	start, err = io.ReadAll(io.LimitReader(r, maxKept))
	if err != nil {
		return start, false, err
	}
	rest, err := io.Copy(io.Discard, r)
	return start, rest > 0, err
}

// RetryAfter reads the Retry-After header of RFC 9110, which holds seconds or a
// date, and returns how long that is from now. It returns 0 for a time that has
// passed, and for text that is neither.
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
