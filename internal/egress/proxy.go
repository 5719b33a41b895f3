package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// CheckProxy returns an error if a URL must not be stored as a proxy. A proxy has the
// scheme http, https or socks5, may have a user and a password, and is at an address
// that the client may reach. The text of the error is for users and does not repeat
// the URL.
func (c *Client) CheckProxy(raw string) error {
	if len(raw) > maxURL {
		return errors.New("a URL has at most " + strconv.Itoa(maxURL) + " bytes")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" ||
		!slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		return errors.New("write a proxy such as socks5://user:secret@proxy.example.com:1080; " +
			"http, https and socks5 are known")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("a proxy's URL ends with its host and port")
	case !validPort(u):
		return errors.New("the URL's port is a number from 1 to 65535")
	}
	return c.checkHost(u.Hostname())
}

// Through returns a copy of base that reaches every host through a proxy. The
// proxy's own address is checked at every dial; the proxy decides which hosts may be
// reached behind it. The transport keeps no idle connections. The error is that of
// [Client.CheckProxy].
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
