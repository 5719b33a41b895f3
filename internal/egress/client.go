// Package egress posts to URLs that users configure. It checks the address of every
// connection after the name was resolved and before the first packet. A redirect, a
// changing answer of a name server or an unusual spelling of an address can
// therefore not reach a private network. The size and the duration of every answer
// are bounded, and every failure has one of a few reasons that users may see.
//
// The package uses [net/http.Transport]. Each tenant has its own transport, so that
// no tenant reads from a connection that another tenant has used.
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

// Options configure [NewClient]. The zero value is right for production.
type Options struct {
	AllowPrivate   bool           // for development: allows http and every address
	Networks       []netip.Prefix // private networks that may be reached by https
	Timeout        time.Duration  // limit of one exchange, including the answer's body; 0 means 15 s
	MaxIdlePerHost int            // idle connections of one tenant to one host; 0 means 64
	RootCAs        *x509.CertPool // certificate authorities to trust; nil means those of the system
}

// Client posts to URLs that users configure. It is safe for concurrent use. It
// follows no redirects, uses no proxy and stores no cookies.
type Client struct {
	opts  Options
	guard guard
	pools *pools
}

// NewClient returns a client that shares no connections with other clients. Call
// [Client.Close] to close its idle connections.
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

// Post sends a body and reads the answer. Connections are reused only for the same
// tenant. Post modifies header, which the caller must not use afterwards. If there
// is no answer or its status is not 2xx, the error is an [*Error], and Answer
// contains what was read. If ctx is canceled, the error is that of ctx.
func (c *Client) Post(ctx context.Context, tenant, to string, header http.Header, body []byte) (Answer, error) {
	u, err := c.allowed(to) // the rules may have changed since the URL was registered
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

// exchange makes one request and reads the answer, within the time-out.
func (c *Client) exchange(
	ctx context.Context, tenant string, to *url.URL, header http.Header, body []byte,
) (Answer, error) {
	p := c.pools.acquire(tenant)
	defer c.pools.release(p)
	address := addressOf(to)
	p.conns.enter(address)
	defer p.conns.leave(address)
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	x := &exchange{}
	defer x.end()
	try := func() (*http.Response, error) { return p.transport.RoundTrip(x.request(ctx, to, header, body)) }
	res, err := try() //nolint:bodyclose // closed below
	if err != nil && x.missed() {
		res, err = try() //nolint:bodyclose // closed below
	}
	if errors.Is(err, errTooMany) {
		res, err = retry(ctx, p.conns, try)
	}
	if err != nil {
		return Answer{}, x.failure(err)
	}
	defer res.Body.Close()
	return readAnswer(res)
}

// retry tries again whenever a dial or an exchange ends, until there is room for another dial.
// net/http begins a dial for each request without an idle connection, and goes on with it when
// the request gets another one. So when dials take longer than requests, more of them are in
// progress than there are requests.
func retry(ctx context.Context, c *conns, try func() (*http.Response, error)) (*http.Response, error) {
	for {
		moved := c.wait()
		res, err := try()
		if !errors.Is(err, errTooMany) {
			return res, err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, &Error{Timeout, ctx.Err()}
		}
	}
}

// addressOf returns the address that net/http dials for a URL.
func addressOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "http":
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return net.JoinHostPort(u.Hostname(), "443")
}

// Close closes the connections of all tenants without a running exchange. The client
// can still be used.
func (c *Client) Close() { c.pools.close() }

// Transport returns a transport with the settings of the client, as a baseline for
// benchmarks. It shares no connections with the client and does not limit how many
// bytes a host sends outside of its answers.
func (c *Client) Transport() *http.Transport {
	p := c.pools.newPool("")
	p.conns.unlimited = true
	p.transport.MaxIdleConns, p.transport.MaxIdleConnsPerHost = maxIdlePerTenant, c.opts.MaxIdlePerHost
	return p.transport
}
