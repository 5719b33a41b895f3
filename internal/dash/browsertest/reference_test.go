package browsertest

import (
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

// TestReferenceIsForEverybody: the API reference can be used with a screen reader and with a keyboard alone.
func TestReferenceIsForEverybody(t *testing.T) {
	t.Parallel()
	b := open(t, testkit.Start(t).URL())
	for _, path := range []string{"/docs", "/docs/api/media"} {
		b.goTo(path)
		b.usable()
		b.byKeyboard()
	}
}

// TestReferenceFiltersAndTriesOut sends requests from the reference: one without a body, and one with the body of
// its example, changed.
func TestReferenceFiltersAndTriesOut(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	b := open(t, k.URL())
	b.goTo("/docs/api/me")
	b.fill("#filter", "post /v1/devices link")
	b.until("the filter shows an operation of another page", func() bool { return b.shows("Open a link attempt") })
	if b.shows("List messages") {
		t.Error("the filter shows what does not match")
	}
	b.do(click(".try"))
	b.fill(".send .secret", c.Key)
	b.do(click(".send button"))
	b.awaits(string(c.Workspace))
	b.sees("200 OK")
	b.usable()

	b.goTo("/docs/api/devices#createDevice")
	b.do(click("section[aria-labelledby=createDevice] .try"))
	b.fill(".send .secret", c.Key)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".send textarea").value = '{"name": "<b>It\'s tried</b>"}'`))
	b.do(click(".send button"))
	b.awaits(`"name": "<b>It's tried</b>"`)
	b.sees("201 Created")
	var list struct{ Data []struct{ Name string } }
	c.Call("GET", "/v1/devices", nil, 200, &list)
	if len(list.Data) != 1 || list.Data[0].Name != "<b>It's tried</b>" {
		t.Errorf("the devices are %v", list.Data)
	}
}

// shows tells whether a link of the navigation with a text can be seen.
func (b *browser) shows(text string) bool {
	b.t.Helper()
	shown, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`[...document.querySelectorAll("#sections a")].some((a) =>
		a.textContent === "`+text+`" && a.checkVisibility({visibilityProperty: true}))`))
	b.must(err)
	return shown
}
