package egress

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
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
			_, err := c.Post(t.Context(), "ws", url, nil, nil)
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
			_, err := c.Post(t.Context(), "ws", "https://rebinding.example.com/", nil, nil)
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
	if _, err := c.Post(t.Context(), "ws", "https://two.example.com:"+port, nil, nil); reasonOf(err) != Blocked {
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
	for _, at := range []string{
		"93.184.215.14:443", "8.8.8.8:8443", "1.1.1.1:22", "[2606:4700:4700::1111]:443",
		"[2a00:1450:4001::1]:9000", "172.15.255.255:443", "172.32.0.1:443",
		"100.128.0.1:443",
	} {
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
	c := NewClient(Options{Networks: []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"),
		netip.MustParsePrefix("fd00:1::/64"),
	}})
	for ip, want := range map[string]bool{
		"10.1.2.3": true, "10.2.0.1": false, "[fd00:1::5]": true,
		"[fd00:2::5]": false, "127.0.0.1": false,
	} {
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
	c.pools.dialer.net.Resolver = &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn,
			error,
		) {
			client, server := net.Pipe()
			go serveDNS(server, ips)
			return client, nil
		},
	}
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

// answerDNS answers a query of one question (RFC 1035, section 4) with those of the
// addresses that are of its type.
func answerDNS(query []byte, ips []string) ([]byte, error) {
	const header, typeA, typeAAAA = 12, 1, 28
	end := header + bytes.IndexByte(query[min(header, len(query)):], 0) + 5 // the name's end, its type and class
	if end < header+5 || end > len(query) {
		return nil, errors.New("not a query")
	}
	var answers []byte
	count := uint16(0)
	for _, text := range ips {
		ip := netip.MustParseAddr(text)
		if kind := binary.BigEndian.Uint16(query[end-4:]); ip.Is4() && kind != typeA || ip.Is6() && kind != typeAAAA {
			continue
		}
		count++
		answers = append(answers, 0xc0, header)           // the name of the question
		answers = append(answers, query[end-4:end]...)    // its type and class
		answers = append(answers, 0, 0, 0, 0)             // not to be kept
		answers = append(answers, 0, byte(ip.BitLen()/8)) // the length of what follows
		answers = append(answers, ip.AsSlice()...)
	}
	m := append(slices.Clone(query[:2]), 0x81, 0x80) // an answer, as one that asks on gives it
	for _, n := range []uint16{1, count, 0, 0} {     // questions, answers and none of the rest
		m = binary.BigEndian.AppendUint16(m, n)
	}
	return append(append(m, query[header:end]...), answers...), nil
}

// A name server that nobody understands would have the tests above pass.
func TestNameServerOfTheseTestsIsUnderstood(t *testing.T) {
	t.Parallel()
	r := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveDNS(server, []string{"10.1.2.3", "fd00::1"})
		return client, nil
	}}
	got, err := r.LookupNetIP(t.Context(), "ip", "rebinding.example.com")
	slices.SortFunc(got, netip.Addr.Compare)
	if want := []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fd00::1")}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
