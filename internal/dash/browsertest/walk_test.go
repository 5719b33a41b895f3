package browsertest

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
)

// elsewhere are the patterns that TestEveryPageIsForEverybody does not visit, with
// what does.
var elsewhere = map[string]string{
	"/setup/{token}":                 "every test begins there",
	"/signin/second":                 "TestPasskeyAsTheSecondStep",
	"/account/second/app":            "TestPasskeyAsTheSecondStep",
	"/signin/forgotten":              "TestInvitationAndNewPasswordByMail",
	"/signin/oidc":                   "leads to a provider: TestSignInByOIDC",
	"/join/{token}/oidc":             "leads to a provider: TestSignInByOIDC",
	"/account/again":                 "leads to a provider: TestSignInByOIDC",
	"/account/identities":            "needs a provider: TestSignInByOIDC",
	"/account/identities/connect":    "leads to a provider: TestSignInByOIDC",
	"/operator/people/{id}/password": "TestOperator",
	"/events/new":                    "a part of a page",
	"/find":                          "a part of a page",
	"/webhooks/{id}/backlog":         "a part of a page",
	"/webhooks/{id}/replay/failed":   "a part of a page",
	"/health":                        "a part of a page",
	"/live":                          "a stream",
	"/messages.csv":                  "a file",
	"/media/{id}":                    "a file",
	"/media/{id}/poster":             "a file",

	"/devices/{id}/phone/files/{message}": "a file",
}

// Every page that the dashboard has, read from its sources: axe finds nothing, and
// all that can be used is reached with the tab key and shows that it has the focus, and
// some page leads there. Other tests judge a page only in a state that it does not have
// here: empty, refused, with a dialog open.
func TestEveryPageIsForEverybody(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth") // the account that sets up owns it too
	b, guest := open(t, k.URL()), open(t, k.URL())
	b.setUp(k)
	in := filled(t, k, c)
	for _, path := range []string{"/signin", in["/join/{token}"]} {
		guest.goTo(path)
		guest.usable()
		guest.byKeyboard()
	}
	patterns := patterns(t)
	var visited []string
	linked := map[string]bool{}
	for pattern, why := range elsewhere {
		if !slices.Contains(patterns, pattern) {
			t.Errorf("%s (%s) is no page any more", pattern, why)
		}
	}
	for _, pattern := range patterns {
		if elsewhere[pattern] != "" || pattern == "/signin" || pattern == "/join/{token}" {
			continue
		}
		path, ok := in[pattern]
		if !ok && strings.Contains(pattern, "{") {
			t.Errorf("nobody visits %s", pattern)
			continue
		}
		if !ok {
			path = pattern
		}
		b.goTo(path)
		visited = append(visited, path)
		maps.Copy(linked, b.links())
		if strings.Contains(b.text(), "Not found") {
			t.Errorf("%s is not found", path)
		}
		b.usable()
		b.byKeyboard()
	}
	for _, path := range visited {
		plain, _, _ := strings.Cut(path, "?")
		if plain, err := url.PathUnescape(plain); err != nil || !linked[plain] &&
			plain != "/workspaces" && plain != "/design" { // for those with many, and for those who change the pages
			t.Errorf("no page leads to %s", path)
		}
	}
}

// links are where a page leads, as paths.
func (b *browser) links() map[string]bool {
	b.t.Helper()
	list, err := chromedp.Run(
		b.ctx,
		chromedp.Evaluate[[]string](`[...document.querySelectorAll('a[href]')].map((a) => decodeURIComponent(new URL(a.href).pathname))`),
	)
	b.must(err)
	paths := map[string]bool{}
	for _, path := range list {
		paths[path] = true
	}
	return paths
}

// patterns are the paths of pages in the sources.
func patterns(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no sources: %v", err)
	}
	list := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"GET (/[^"]*)"`).FindAllStringSubmatch(string(text), -1) {
			list[strings.TrimSuffix(m[1], "{$}")] = true
		}
	}
	return slices.Sorted(maps.Keys(list))
}

// filled makes one of each thing, and gives for each pattern the path of its page.
func filled(t *testing.T, k *testkit.Kit, c *testkit.Client) map[string]string {
	t.Helper()
	hooks := c.Receive()
	d := c.Link("+15550001111")
	c.Call(
		"POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{"from": "+15551234567", "body": "Hello"},
		200,
		nil,
	)
	hooks.Await(postern.MessageReceived)
	var messages, deliveries struct{ Data []struct{ ID string } }
	var events struct{ Data []struct{ EventID string } }
	c.Call("GET", "/v1/events", nil, 200, &events)
	c.Call("GET", "/v1/messages", nil, 200, &messages)
	hook := "/v1/webhooks/" + string(hooks.Endpoint.ID)
	c.Call("GET", hook+"/deliveries", nil, 200, &deliveries)
	var replay struct{ ID string }
	c.Call("POST", hook+"/replay", map[string]any{}, 202, &replay)
	var group postern.Group
	c.Call("POST", "/v1/devices/"+string(d.ID)+"/groups", map[string]any{
		"subject": "Orders", "participants": []string{"+15551234567"},
	}, 201, &group)
	_, token, err := k.People().Users.Create(t.Context(), access.Operator(), c.Workspace, people.NewUser{
		Email: "bob@example.com", Role: postern.Viewer,
	})
	if err != nil {
		t.Fatal(err)
	}
	device, webhook := "/devices/"+string(d.ID), "/webhooks/"+string(hooks.Endpoint.ID)
	return map[string]string{
		"/join/{token}": "/join/" + token, "/": "/", "/devices/{id}": device, "/devices/{id}/delete": device + "/delete",
		"/devices/{id}/health": device + "/health", "/devices/{id}/settings": device + "/settings", "/devices/{id}/phone": device + "/phone",
		"/events/{id}":   "/events/" + events.Data[0].EventID,
		"/messages/{id}": "/messages/" + messages.Data[0].ID, "/messages/chats": "/messages/chats?device=" + string(d.ID),
		"/messages/chats/{device}/{chat}":  "/messages/chats/" + string(d.ID) + "/" + url.PathEscape("+15551234567"),
		"/contacts/groups/{device}/{chat}": "/contacts/groups/" + string(d.ID) + "/" + url.PathEscape(group.ChatID),
		"/operator/workspaces/{id}":        "/operator/workspaces/" + string(c.Workspace),
		"/webhooks/{id}":                   webhook, "/webhooks/{id}/deliveries": webhook + "/deliveries",
		"/webhooks/{id}/deliveries/{delivery}": webhook + "/deliveries/" + deliveries.Data[0].ID,
		"/webhooks/{id}/edit":                  webhook + "/edit", "/webhooks/{id}/replay": webhook + "/replay",
		"/webhooks/{id}/replays": webhook + "/replays", "/webhooks/{id}/replays/{replay}": webhook + "/replays/" + replay.ID,
		"/webhooks/{id}/secret": webhook + "/secret",
	}
}

// usables lists what can be used on a page: of the choices of one name, one.
const usables = `(() => {
	const names = new Set()
	window.usables = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')].filter((e) => {
		if (e.disabled || !e.checkVisibility({ visibilityProperty: true })) return false
		if (e.type !== 'radio') return true
		const first = !names.has(e.name)
		names.add(e.name)
		return first
	})
	window.reached = new Set()
	document.addEventListener('focusin', (e) => {
		const s = getComputedStyle(e.target), cut = e.target.closest('.rows > li')?.getBoundingClientRect()
		const out = parseFloat(s.outlineOffset) + parseFloat(s.outlineWidth)
		if (cut && s.outlineStyle !== 'none' && e.target.getBoundingClientRect().left - out < cut.left) return // it is not drawn
		if (s.outlineStyle !== 'none' || s.boxShadow !== 'none') reached.add(e.target).add(e.target.type === 'radio' ? e.target.name : null)
	})
	return usables.length
})()`

// missed are those that had no focus, or did not show it. What the page has put
// another one in the place of meanwhile does not count.
const missed = `usables.filter((e) => e.isConnected && !reached.has(e) && !(e.type === 'radio' && reached.has(e.name)))
	.map((e) => e.outerHTML.slice(0, 200))`

// tab presses the tab key some times, without a pause in which the page would be drawn. All are the same key, so that
// their order does not matter. That the key is let go moves no focus.
func (b *browser) tab(times int) {
	b.t.Helper()
	var presses errgroup.Group
	for range times {
		presses.Go(func() error {
			_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
				Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Tab", Code: "Tab", WindowsVirtualKeyCode: 9,
			})
			return err
		})
	}
	b.must(presses.Wait())
}

// byKeyboard fails for what the tab key does not reach on a page.
func (b *browser) byKeyboard() {
	b.t.Helper()
	n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](usables))
	b.must(err)
	if n == 0 {
		b.t.Errorf("%s: nothing can be used", b.path())
	}
	var list []string
	for range 4 { // each half a page and some more: from where the page has put the focus to the end, and from the start
		b.tab(n/2 + 5)
		list, err = chromedp.Run(b.ctx, chromedp.Evaluate[[]string](missed))
		if b.must(err); len(list) == 0 {
			return
		}
	}
	b.t.Errorf("%s: the tab key does not reach %q", b.path(), list)
}
