package testkit_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// visitor is somebody's browser without scripts: it keeps cookies and follows
// redirects.
type visitor struct {
	t    *testing.T
	http *http.Client
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, &http.Client{Jar: jar, Transport: testkit.Transport}}
}

func (v *visitor) do(method, url string, header ...string) (status int, h http.Header, body string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, url, http.NoBody)
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// sees fails unless a request has the status, and each of the texts or, after
// "not", none.
func (v *visitor) sees(method, url string, status int, texts ...string) string {
	v.t.Helper()
	got, _, body := v.do(method, url)
	if got != status {
		v.t.Fatalf("%s of the page = %d, want %d\n%s", method, got, status, body)
	}
	want := true
	for _, text := range texts {
		if text == "not" {
			want = false
		} else if strings.Contains(body, text) != want {
			v.t.Errorf("%s of the page: has %q = %v\n%s", method, text, !want, body)
		}
	}
	return body
}

type linkPage struct {
	URL       string       `json:"url"`
	ExpiresAt postern.Time `json:"expiresAt"`
}

func openPage(c *testkit.Client, d postern.Device) (p linkPage) {
	c.Call("POST", path(d, "/link/page"), nil, 201, &p)
	return p
}

func TestLinkPageIsForOneBrowser(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := create(c)
	if a := c.Do("POST", path(d, "/link/page"), nil); a.Status != 409 ||
		!strings.Contains(string(a.Body), "no-open-link") {
		t.Errorf("a page without an attempt = %d %s", a.Status, a.Body)
	}
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	lost := openPage(c, d)
	p := openPage(c, d)
	token := p.URL[strings.LastIndex(p.URL, "/")+1:]
	if len(token) != 43 || !strings.HasPrefix(p.URL, k.URL()+"/link/") {
		t.Errorf("the page's address is %s", p.URL)
	}
	awaitLink(t, c, d, func(l postern.Link) bool { return l.QR != "" && l.ExpiresAt == p.ExpiresAt })

	one, other := newVisitor(t), newVisitor(t)
	one.sees("GET", lost.URL, 404, "not", "<svg")
	for range 2 { // looking at it takes nothing
		other.sees("GET", p.URL, 200, "acme", "<button>", "not", "<svg")
	}
	other.sees("GET", p.URL+"/now", 410, "not", "<svg")
	one.sees("POST", p.URL, 200, "<svg", "Linked devices", "acme", `http-equiv="refresh"`, "not", "<button>")
	one.sees("POST", p.URL, 200, "<svg") // twice is no harm
	for _, method := range []string{"GET", "POST"} {
		other.sees(method, p.URL, 410, "not", "<svg", "<button>")
	}
	other.sees("GET", p.URL+"/now", 410, "not", "<svg")

	if a := enter(c, d, map[string]any{"phoneNumber": phone}); a.Status != 200 {
		t.Fatalf("scan = %d %s", a.Status, a.Body)
	}
	c.Await(d.ID, postern.Connected)
	one.sees("GET", p.URL, 200, "Your phone is linked", "not", "<svg", `http-equiv="refresh"`, "page.js")
	if log := k.Log.String(); strings.Contains(log, token) {
		t.Error("the page's token is in the log")
	}
}

// TestLinkPageFollowsTheAttempt is what its script sees.
func TestLinkPageFollowsTheAttempt(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := create(c)
	c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": phone}, 201, nil)
	p := openPage(c, d)
	v := newVisitor(t)
	v.sees("GET", p.URL, 200, "enter a code")
	v.sees("POST", p.URL, 200)
	l := awaitLink(t, c, d, func(l postern.Link) bool { return l.PairingCode != "" })
	seen := func(body string) string {
		_, after, _ := strings.Cut(body, `data-seen="`)
		name, _, _ := strings.Cut(after, `"`)
		return name
	}
	shown := seen(v.sees("GET", p.URL, 200, string(l.PairingCode), "ends in 1111"))
	next := make(chan string)
	go func() {
		_, h, body := v.do("GET", p.URL+"/now?seen="+shown)
		next <- h.Get("Page-Done") + body
	}()
	c.Call("DELETE", path(d, "/link"), nil, 204, nil)
	if got := <-next; !strings.HasPrefix(got, "1") || !strings.Contains(got, "canceled by the person who started it") {
		t.Errorf("after the attempt was canceled the script gets %q", got)
	}
	c.Call("POST", path(d, "/link"), nil, 201, nil) // another attempt does not belong to this page
	v.sees("GET", p.URL, 200, "The phone was not linked", "not", "<svg")
}

func TestLinkPageHeaders(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := create(c)
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	p := openPage(c, d)
	v := newVisitor(t)
	v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if status, _, _ := v.do("POST", p.URL, "Sec-Fetch-Site", "cross-site"); status != 403 {
		t.Errorf("a form of another site = %d", status)
	}
	status, h, _ := v.do("POST", p.URL, "Sec-Fetch-Site", "same-origin")
	cookie := h.Get("Set-Cookie")
	for _, part := range []string{"; HttpOnly", "; SameSite=Strict", "; Path=/link/", "; Max-Age=900"} {
		if status != 303 || !strings.Contains(cookie, part) {
			t.Errorf("%d with the cookie %q, want %q in it", status, cookie, part)
		}
	}
	for _, url := range []string{
		p.URL, p.URL + "/now", k.URL() + "/link/x", k.URL() + "/link/page.js",
		k.URL() + "/link/page.css",
	} {
		status, h, body := v.do("GET", url)
		if h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" ||
			!strings.Contains(h.Get("X-Robots-Tag"),
				"noindex") ||
			!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") ||
			strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("headers of %d: %v", status, h)
		}
		if strings.Contains(body, "<script>") || strings.Contains(body, "style=") ||
			strings.Contains(body, " onclick") {
			t.Errorf("the page has scripts or styles of its own: %s", body)
		}
	}
}

func TestLinkPageEscapesTheWorkspace(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.NamedWorkspace(`<b>"Bold" & Co</b>`, "growth")
	d := create(c)
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	newVisitor(t).sees("GET", openPage(c, d).URL, 200, "&lt;b&gt;", "not", "<b>\"Bold\"")
}

// comeBack leaves the page and returns by a link of another site.
func (b *browser) comeBack() {
	b.t.Helper()
	url := b.eval("location.href")
	b.call("Page.navigate", map[string]any{"url": "data:text/html,<a href='" + url + "'>elsewhere</a>"}, nil)
	b.await("elsewhere")
	b.eval(`document.querySelector("a").click()`)
}

// TestLinkPageInABrowser follows both ways to link on a phone's screen, to a
// success that shows without loading the page again.
func TestLinkPageInABrowser(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	b := newBrowser(t)
	for _, tt := range []struct {
		name, shows string
		body        map[string]any
		number      string
	}{
		{"qr", "Point the camera at this code", map[string]any{}, phone},
		{"code", "enter this code", map[string]any{"method": "code", "phoneNumber": "+15550002222"}, "+15550002222"},
	} {
		d := create(c)
		c.Call("POST", path(d, "/link"), tt.body, 201, nil)
		b.call("Page.navigate", map[string]any{"url": openPage(c, d).URL}, nil)
		b.await("Show the code")
		b.fits(tt.name + ": the button")
		b.picture(tt.name + "-button")
		b.eval(`document.querySelector("button").click()`)
		b.await(tt.shows)
		b.eval("window.same = true")
		if rules := b.eval(`getComputedStyle(document.querySelector("main")).borderRadius`); rules != "16px" {
			t.Errorf("%s: the page has no style (%s)", tt.name, rules)
		}
		b.fits(tt.name + ": the code")
		b.comeBack()
		b.await(tt.shows)
		b.eval("window.same = true")
		b.picture(tt.name + "-code")
		if a := enter(c, d, map[string]any{"phoneNumber": tt.number}); a.Status != 200 {
			t.Fatalf("scan = %d %s", a.Status, a.Body)
		}
		b.await("Your phone is linked")
		b.picture(tt.name + "-linked")
		if b.eval("window.same") != "true" {
			t.Errorf("%s: the page was loaded again to show success", tt.name)
		}
	}
}
