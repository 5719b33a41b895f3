package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// CheckProxy tells whether a URL may be stored as a proxy: http, https or socks5,
// with or without a user, at an address that may be reached. The error is a
// text for people that does not repeat the URL.
func (c *Client) CheckProxy(raw string) error {
	if len(raw) > maxURL {
		return errors.New("a URL has at most " + strconv.Itoa(maxURL) + " bytes")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" ||
		!slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return errors.New("write a proxy such as socks5://user:secret@proxy.example.com:1080; http, https and socks5 are known")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("a proxy's URL ends with its host and port")
	case !validPort(u):
		return errors.New("the URL's port is a number from 1 to 65535")
	}
	return c.checkHost(u.Hostname())
}

// Through makes a transport like base that reaches every host through a proxy.
// The address of the proxy itself passes the guard at every dial; which hosts
// may be reached behind it is for the proxy to decide. The transport keeps no
// idle connections.
func (c *Client) Through(base *http.Transport, proxy string) (*http.Transport, error) {
	if err := c.CheckProxy(proxy); err != nil {
		return nil, fmt.Errorf("dial through a proxy: %w", err)
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return nil, errors.New("dial through a proxy: its URL cannot be read")
	}
	t := base.Clone()
	t.Proxy = http.ProxyURL(u)
	t.DialContext, t.DialTLSContext = c.pools.dialer.dial, c.pools.dialer.dialTLS
	t.MaxIdleConnsPerHost = -1
	return t, nil
}
