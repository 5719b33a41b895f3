package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// forbidden are addresses that no user's URL may reach, one or more of each
// special range and of each way to hide one inside another. Tests of each field
// that takes a URL read the same table.
func forbidden(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/forbidden.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func TestForbiddenAddressIsRefusedAsALiteral(t *testing.T) {
	t.Parallel()
	c := NewClient(Options{})
	for _, ip := range forbidden(t) {
		host := ip
		if strings.Contains(ip, ":") {
			host = "[" + ip + "]"
		}
		for _, url := range []string{"https://" + host + "/hook", "https://" + host + ":8443"} {
			if err := c.CheckURL(url); err == nil {
				t.Errorf("CheckURL(%s) allows it", url)
			}
			_, err := c.Post(t.Context(), url, nil, nil)
			if got := reasonOf(err); got != Blocked {
				t.Errorf("Post(%s) = %v, want blocked", url, err)
			}
		}
	}
}

func TestForbiddenAddressIsRefusedAsAnAnswerOfDNS(t *testing.T) {
	t.Parallel()
	for _, ip := range forbidden(t) {
		t.Run(ip, func(t *testing.T) {
			t.Parallel()
			c := NewClient(Options{})
			c.resolve(t, ip)
			_, err := c.Post(t.Context(), "https://rebinding.example.com/", nil, nil)
			// Go's resolver itself drops answers that are no unicast address.
			if got := reasonOf(err); got != Blocked && got != DNS {
				t.Errorf("reason = %q (%v), want blocked", got, err)
			}
		})
	}
}

func TestNothingIsSentToAForbiddenAddress(t *testing.T) {
	t.Parallel()
	touched := false
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(net.Conn, http.ConnState) { touched = true }
	srv.StartTLS()
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	c := NewClient(Options{})
	c.resolve(t, "127.0.0.1", "::1", "10.1.2.3")
	if _, err := c.Post(t.Context(), "https://two.example.com:"+port, nil, nil); reasonOf(err) != Blocked {
		t.Errorf("error = %v, want blocked", err)
	}
	srv.Close()
	if touched {
		t.Error("a connection reached a private listener")
	}
}

func TestPublicAddressAndAnyPortIsAllowed(t *testing.T) {
	t.Parallel()
	g := newGuard(Options{})
	for _, at := range []string{"93.184.215.14:443", "8.8.8.8:8443", "1.1.1.1:22", "[2606:4700:4700::1111]:443", "[2a00:1450:4001::1]:9000", "172.15.255.255:443", "172.32.0.1:443", "100.128.0.1:443"} {
		network := "tcp4"
		if at[0] == '[' {
			network = "tcp6"
		}
		if err := g.control(t.Context(), network, at, nil); err != nil {
			t.Errorf("%s is refused: %v", at, err)
		}
	}
}

func TestAllowedNetworkIsReachedAndNoOther(t *testing.T) {
	t.Parallel()
	c := NewClient(Options{Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/64")}})
	for ip, want := range map[string]bool{"10.1.2.3": true, "10.2.0.1": false, "[fd00:1::5]": true, "[fd00:2::5]": false, "127.0.0.1": false} {
		if err := c.CheckURL("https://" + ip); (err == nil) != want {
			t.Errorf("CheckURL(%s) = %v, allowed should be %v", ip, err, want)
		}
	}
	if err := c.CheckURL("http://10.1.2.3"); err == nil {
		t.Error("an allowed network made plain http allowed")
	}
}

func reasonOf(err error) Reason {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Reason
	}
	return ""
}

// resolve gives every name these addresses, from a name server of the test.
func (c *Client) resolve(t *testing.T, ips ...string) {
	t.Helper()
	d := dialer{net: net.Dialer{Timeout: connectTimeout, ControlContext: c.guard.control}, tls: testTLS(nil)}
	d.net.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveDNS(server, ips)
		return client, nil
	}}
	c.transport = newTransport(d, 1)
	t.Cleanup(c.Close)
}

// serveDNS answers queries on a stream, each with its length before it.
func serveDNS(conn net.Conn, ips []string) {
	defer conn.Close()
	for {
		var head [2]byte
		if _, err := readFull(conn, head[:]); err != nil {
			return
		}
		query := make([]byte, int(head[0])<<8|int(head[1]))
		if _, err := readFull(conn, query); err != nil {
			return
		}
		answer, err := answerDNS(query, ips)
		if err != nil {
			return
		}
		conn.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...))
	}
}

func answerDNS(query []byte, ips []string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	q := m.Questions[0]
	for _, text := range ips {
		ip := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}
		switch {
		case q.Type == dnsmessage.TypeA && ip.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: ip.As4()}})
		case q.Type == dnsmessage.TypeAAAA && ip.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	return m.Pack()
}
