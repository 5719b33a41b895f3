package egress

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// CheckURL returns an error if a URL must not be registered. The text of the error
// is for users and does not repeat the URL. CheckURL does not resolve the host's
// name; its addresses are checked whenever a connection is made.
func (c *Client) CheckURL(raw string) error {
	_, err := c.allowed(raw)
	return err
}

// allowed parses a URL and returns an error if it must not be registered.
func (c *Client) allowed(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		err = errNoURL
	} else {
		err = c.checkURL(u, raw)
	}
	return u, err
}

var errNoURL = errors.New("write a URL such as https://hooks.example.com/postern")

func (c *Client) checkURL(u *url.URL, raw string) error {
	if len(raw) > maxURL {
		return errors.New("a URL has at most " + strconv.Itoa(maxURL) + " bytes")
	}
	switch {
	case u.Opaque != "" || u.Hostname() == "":
		return errNoURL
	case u.Scheme == "http" && !c.opts.AllowPrivate:
		return errors.New("the URL must start with https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL must start with https://")
	case u.User != nil:
		return errors.New("a URL holds no user name or password; use a header instead")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return errors.New("a URL ends before its fragment, the part after #")
	case !validPort(u):
		return errors.New("the URL's port is a number from 1 to 65535")
	}
	if err := c.checkHost(u.Hostname()); err != nil {
		return err
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("a URL holds no spaces and nothing beyond ASCII; " +
			"write such a byte as % and two hexadecimal digits")
	}
	return nil
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

func (c *Client) checkHost(host string) error {
	if !plainHost(host) {
		return errors.New("the URL's host is a name in letters, digits, hyphens and dots; " +
			"write an international name in its xn-- form")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" || c.guard.check(ip) != nil {
			return errors.New("the URL's address is not public")
		}
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case strings.ContainsAny(name, ":%"):
		return errors.New("the URL's address cannot be read")
	case endsInNumber(name):
		return errors.New("write an IPv4 address as four decimal numbers")
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		if c.guard.check(netip.AddrFrom4([4]byte{127, 0, 0, 1})) != nil {
			return errors.New("the URL's host is not public")
		}
	}
	return nil
}

// plainHost reports whether a host consists of characters that all parsers read in
// the same way. It refuses signs that some parsers map to digits or dots, escapes
// and spaces.
func plainHost(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._:%", r)
	}) && !strings.Contains(host, "..") && !strings.HasPrefix(host, ".")
}

// endsInNumber reports whether some parsers take a name for an IPv4 address. By the
// rule of the URL standard they do if its last label is a decimal, octal or
// hexadecimal number.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	digits, hex := strings.CutPrefix(last, "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
