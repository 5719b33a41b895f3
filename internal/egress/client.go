// Package egress posts to addresses that users name. Every connection is
// checked where it is made, after the name was resolved: no redirect, no second
// answer of a name server and no odd spelling of an address leads into a
// private network. What comes back is bounded in time and size, and what goes
// wrong has one of a few reasons that a user may see.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

const (
	defaultTimeout = 15 * time.Second // the contract's, body of the answer included
	connectTimeout = 10 * time.Second // of a dial, and of a TLS handshake
	defaultIdle    = 64               // connections kept for a host: the most that one endpoint may use at once
	maxIdle        = 1024             // connections kept for all hosts
	idleTimeout    = 90 * time.Second

	maxHeader = 64 << 10 // of an answer
	maxRead   = 64 << 10 // of an answer's body; a longer one costs the connection
	maxKept   = 1 << 10  // of an answer's body
	maxURL    = 2048
)

// Options configure NewClient. The zero value is right for production.
type Options struct {
	AllowPrivate   bool           // for development: http, and every address
	Networks       []netip.Prefix // private networks that may be reached, by https
	Timeout        time.Duration  // of one exchange, the answer's body included; 0: 15 s
	MaxIdlePerHost int            // connections kept open for a host; 0: 64
}

// Client posts to addresses that users name. It is safe for many goroutines and
// follows no redirect, uses no proxy and keeps no cookies.
type Client struct {
	opts      Options
	guard     guard
	dialer    dialer
	transport *transport
}

// NewClient makes a client with connections of its own.
func NewClient(opts Options) *Client {
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.MaxIdlePerHost == 0 {
		opts.MaxIdlePerHost = defaultIdle
	}
	g := newGuard(opts)
	d := dialer{
		net: net.Dialer{Timeout: min(connectTimeout, opts.Timeout), ControlContext: g.control},
		tls: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}
	return &Client{opts: opts, guard: g, dialer: d, transport: newTransport(d, opts.MaxIdlePerHost)}
}

// Answer is what a host answered.
type Answer struct {
	Status     int           // 0 when there was no answer
	Body       []byte        // at most the first KiB
	Truncated  bool          // the body was longer than what is kept
	RetryAfter time.Duration // 0 when the host did not ask for a pause
}

var identity = []string{"identity"} //nolint:gochecknoglobals // made once, never changed

// Post sends a body and reads the answer. The header is the client's from then
// on. An answer other than 2xx, or none, is a [*Error]; the Answer holds what
// there is of it. When ctx is canceled the error is that of ctx.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) (Answer, error) {
	p, err := c.prepare(url, header, body)
	if err != nil {
		return Answer{}, &Error{Blocked, err}
	}
	answer, err := c.exchange(ctx, p)
	switch {
	case err == nil:
		return answer, judge(answer.Status)
	case errors.Is(ctx.Err(), context.Canceled):
		return answer, ctx.Err()
	}
	return answer, failureOf(err)
}

// prepare checks the URL again: the rules may have changed since it was
// registered.
func (c *Client) prepare(url string, header http.Header, body []byte) (post, error) {
	u, err := c.allowed(url)
	if err != nil {
		return post{}, err
	}
	if header == nil {
		header = http.Header{}
	}
	header["Accept-Encoding"] = identity
	return post{u, header, body, time.Now().Add(c.opts.Timeout)}, nil
}

// exchange posts and reads the answer. Redirects are not followed.
func (c *Client) exchange(ctx context.Context, p post) (a Answer, err error) {
	res, err := c.transport.post(ctx, p)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a.Status = res.StatusCode
	a.RetryAfter = RetryAfter(res.Header.Get("Retry-After"), time.Now())
	if a.Status == http.StatusSwitchingProtocols {
		return a, nil // what follows is no body: reading it would not end with the request
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

// readBody keeps the start of a body and reads on to its end, if that is near,
// so that the connection can be used again.
func readBody(r io.Reader) (kept []byte, truncated bool, err error) {
	r = io.LimitReader(r, maxRead)
	kept, err = io.ReadAll(io.LimitReader(r, maxKept))
	if err != nil {
		return kept, false, err
	}
	rest, err := io.Copy(io.Discard, r)
	return kept, rest > 0, err
}

// RetryAfter reads RFC 9110's Retry-After: seconds, or a date.
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

// Close ends the connections that are kept open. The client stays usable.
func (c *Client) Close() { c.transport.kept.close() }
