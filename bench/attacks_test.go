package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"
)

// attack is what a workspace on Starter does at the rate of its plan.
type attack struct {
	name string
	run  func(context.Context, *street)
}

// attacks are those of a penetration test.
func attacks() []attack {
	return []attack{
		{"responses that nobody reads", unread},
		{"filters that match little", rareFilters},
		{"webhooks that hang on long texts", hangingHooks},
		{"a receiver that sends unsolicited responses", unsolicited},
		{"sign-ins with wrong passwords", wrongPasswords},
		{"a dashboard that creates keys", manyKeys},
	}
}

// unread leaves ten long lists and 400 static files unread.
func unread(ctx context.Context, s *street) {
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { s.leaveUnread(ctx, "/v1/messages?limit=200", s.attacker.Key) })
	}
	for range 400 {
		group.Go(func() { s.leaveUnread(ctx, s.style, "") })
	}
	group.Wait()
}

// leaveUnread makes a request and reads nothing until the end of ctx.
func (s *street) leaveUnread(ctx context.Context, path, key string) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		return // refused: that is an answer
	}
	defer conn.Close()
	s.worked.Add(1)
	header := ""
	if key != "" {
		header = "Authorization: Bearer " + key + "\r\n"
	}
	for range 20 { // one after another on the same connection
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, header); err != nil {
			break
		}
	}
	<-ctx.Done()
}

// rareFilters makes eight callers look for what is not there; each second one leaves before
// it gets a response.
func rareFilters(ctx context.Context, s *street) {
	queries := []string{
		"status=expired", "chatId=%2B15559999999", "direction=outbound", "until=2020-01-01T00:00:00Z",
		"direction=outbound&status=queued", "archived=true", "since=2100-01-01T00:00:00Z", "status=read&archived=true",
	}
	atPlanRate(ctx, len(queries), func(i int) {
		asked := ctx
		if i%2 == 1 {
			limited, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			asked = limited
		}
		s.ask(asked, "/v1/messages?"+queries[i])
	})
}

// ask makes a request of the attacker, whatever its outcome is.
func (s *street) ask(ctx context.Context, path string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+s.attacker.Key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return // it left
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if res.StatusCode == http.StatusOK {
		s.worked.Add(1)
	}
}

// hangingHooks lets texts of 64 KiB arrive for endpoints that never answer.
func hangingHooks(ctx context.Context, s *street) {
	s.forgetHooks()
	for range 4 {
		s.receive(s.attacker.Key, func(_ http.ResponseWriter, r *http.Request) {
			s.worked.Add(1)
			<-r.Context().Done()
		})
	}
	text := strings.Repeat("x", 64<<10)
	atPlanRate(ctx, 8, func(int) { s.inbound(s.attacker.Number, text) })
}

// forgetHooks deletes the endpoints of earlier attacks, whose receivers ended with them.
func (s *street) forgetHooks() {
	var list struct{ Data []struct{ ID string } }
	s.call("GET", s.url+"/v1/webhooks", s.attacker.Key, nil, &list)
	for _, one := range list.Data {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodDelete, s.url+"/v1/webhooks/"+one.ID, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.attacker.Key)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			s.t.Fatal(err)
		}
		res.Body.Close()
	}
}

// unsolicited lets texts arrive for an endpoint that answers each delivery several times.
func unsolicited(ctx context.Context, s *street) {
	s.forgetHooks()
	s.receive(s.attacker.Key, s.answerThrice)
	atPlanRate(ctx, 8, func(int) { s.inbound(s.attacker.Number, "hello") })
}

func (s *street) answerThrice(w http.ResponseWriter, _ *http.Request) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	for _, status := range []string{"200 OK", "410 Gone", "410 Gone"} {
		fmt.Fprintf(buffer, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status)
	}
	buffer.Flush()
	s.worked.Add(1)
	bufio.NewReader(conn).ReadByte() // until the other side closes
}

// wrongPasswords tries 66 passwords at a time, each from a network of its own and for another
// account, so that each is hashed.
func wrongPasswords(ctx context.Context, s *street) {
	var group sync.WaitGroup
	for network := range 66 {
		group.Go(func() { s.guess(ctx, network) })
	}
	group.Wait()
}

// guess tries one password per second from a network until the end of ctx.
func (s *street) guess(ctx context.Context, network int) {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(network))}}
	browser := newBrowser()
	browser.Transport = &http.Transport{DialContext: from.DialContext}
	account := 0
	every(ctx, time.Second, func() {
		account++
		if http.StatusUnauthorized == s.postAs(browser, "/signin", url.Values{
			"email":    {fmt.Sprintf("user%d-%d@example.com", network, account)},
			"password": {"a password that is wrong"},
		}) {
			s.worked.Add(1)
		}
	})
}

// manyKeys creates keys in the dashboard.
func manyKeys(ctx context.Context, s *street) {
	atPlanRate(ctx, 4, func(int) {
		if s.post("/keys", url.Values{"name": {"x"}, "scope": {"messages:read"}, "expiry": {"24h"}}) != 0 {
			s.worked.Add(1)
		}
	})
}

func newBrowser() *http.Client {
	jar, _ := cookiejar.New(nil) // never fails without options
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

func (s *street) post(path string, form url.Values) int { return s.postAs(s.browser, path, form) }

// postAs submits a form and returns the status of the response, or 0 if there was no response.
func (s *street) postAs(browser *http.Client, path string, form url.Values) int {
	res, err := browser.PostForm(s.url+path, form)
	if err != nil {
		return 0
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res.StatusCode
}

func (s *street) page(path string) string {
	res, err := s.browser.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}
