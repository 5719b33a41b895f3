// Package egress posts to addresses that users name. Every connection is
// checked when it is made, after its name was resolved: no redirect, no second
// answer of a name server and no unusual spelling of an address leads into a
// private network. The size and the duration of every answer are bounded, and
// every failure has one of a few reasons that a user may see.
//
// The exchanges are made by [net/http.Transport]. Each tenant has a transport of
// its own, so that no tenant ever reads from a connection that another has used.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Options configure NewClient. The zero value is right for production.
type Options struct {
	AllowPrivate   bool           // for development: allows http, and every address
	Networks       []netip.Prefix // private networks that may be reached, by https
	Timeout        time.Duration  // of one exchange, the answer's body included; 0: 15 s
	MaxIdlePerHost int            // idle connections that a tenant keeps to one host; 0: 64
	RootCAs        *x509.CertPool // the authorities that certificates are checked against; nil: those of the system
}

// Client posts to addresses that users name. It is safe for concurrent use. It
// follows no redirects, uses no proxy and keeps no cookies.
type Client struct {
	opts  Options
	guard guard
	pools *pools
}

// NewClient makes a client that shares no connections with other clients.
func NewClient(opts Options) *Client {
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.MaxIdlePerHost == 0 {
		opts.MaxIdlePerHost = maxIdlePerHost
	}
	g := newGuard(opts)
	d := dialer{
		net: net.Dialer{Timeout: min(connectTimeout, opts.Timeout), ControlContext: g.control},
		tls: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.RootCAs},
	}
	return &Client{opts: opts, guard: g, pools: newPools(d, opts.MaxIdlePerHost)}
}

// Post sends a body and reads the answer. Connections are reused only between
// posts of the same tenant. The header belongs to the client afterwards. When
// the answer is not a 2xx, or there is none, the error is an [*Error], and the
// Answer holds as much as was read. When ctx is canceled, the error is that of
// ctx.
func (c *Client) Post(ctx context.Context, tenant, url string, header http.Header, body []byte) (Answer, error) {
	u, err := c.allowed(url) // again: the rules may have changed since the URL was registered
	if err != nil {
		return Answer{}, &Error{Blocked, err}
	}
	answer, err := c.exchange(ctx, tenant, u, header, body)
	switch {
	case err == nil:
		return answer, judge(answer.Status)
	case errors.Is(ctx.Err(), context.Canceled):
		return answer, ctx.Err()
	}
	return answer, err
}

// exchange posts and reads the answer.
func (c *Client) exchange(
	ctx context.Context, tenant string, to *url.URL, header http.Header, body []byte,
) (Answer, error) {
	p := c.pools.acquire(tenant)
	defer c.pools.release(p)
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	x := &exchange{}
	defer x.end()
	res, err := p.transport.RoundTrip(x.request(ctx, to, header, body))
	if err != nil {
		return Answer{}, x.failure(err)
	}
	defer res.Body.Close()
	return readAnswer(res)
}

// Close closes the connections of all tenants that have no exchange under way.
// The client stays usable.
func (c *Client) Close() { c.pools.close() }

// Transport makes a transport with the settings of the client, for a benchmark to
// compare with. It shares no connections with the client, and does not bound what
// a host sends beside its answers.
func (c *Client) Transport() *http.Transport {
	p := c.pools.newPool("")
	p.unbounded = true
	return p.transport
}
