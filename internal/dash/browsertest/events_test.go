package browsertest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// opensData shows the table of a chart, which is fetched.
func (b *browser) opensData(chart string) {
	b.t.Helper()
	b.do(click("#" + chart + " summary"))
	b.until("the table of "+chart, func() bool { return b.sums(chart) != "" })
}

// sums adds up the columns of a chart's table.
func (b *browser) sums(chart string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(`(() => {
		const sums = [];
		for (const row of document.querySelectorAll('#%s tbody tr')) [...row.querySelectorAll('td')].forEach((cell, i) => { sums[i] = (sums[i] || 0) + (parseFloat(cell.textContent) || 0) });
		return sums.join(' ');
	})()`, chart)))
	b.must(err)
	return text
}

// events are the kinds in the log, as the page lists them.
func (b *browser) events() []string {
	b.t.Helper()
	text, err := chromedp.Run(
		b.ctx,
		chromedp.Evaluate[string](`[...document.querySelectorAll('#events li > bdi')].map(e => e.textContent).join(' ')`),
	)
	b.must(err)
	return strings.Fields(text)
}

// linked links a simulated phone without the pages, and gives a client of the workspace.
func (b *browser) linked(k *testkit.Kit) (*testkit.Client, postern.DeviceID) {
	b.t.Helper()
	c := api(b.t, k)
	var d postern.Device
	c.Call(http.MethodPost, "/v1/devices", map[string]any{"name": "Support"}, http.StatusCreated, &d)
	c.Call(http.MethodPost, "/v1/devices/"+string(d.ID)+"/link", nil, http.StatusCreated, nil)
	if a := c.Scan(d.ID, map[string]any{}); a.Status != http.StatusOK {
		b.t.Fatalf("the scan is answered %d %s", a.Status, a.Body)
	}
	c.Await(d.ID, postern.Connected)
	return c, d.ID
}

// device is linked, and gives the path of the device's page.
func (b *browser) device(k *testkit.Kit) string {
	b.t.Helper()
	_, id := b.linked(k)
	return "/devices/" + string(id)
}

func inbound(c *testkit.Client, device postern.DeviceID, text string) {
	c.Call(
		http.MethodPost, "/v1/sandbox/devices/"+string(device)+"/inbound",
		map[string]any{"from": "+15551234567", "body": text}, http.StatusOK, nil,
	)
}

// until waits for something of the page.
func (b *browser) until(what string, ok func() bool) {
	b.t.Helper()
	testkit.Eventually(b.t, what, func() (bool, any) { return ok(), b.text() })
}

// announces waits until a screen reader is told something.
func (b *browser) announces(text string) {
	b.t.Helper()
	b.until("the words "+text, func() bool {
		said, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.getElementById('said').textContent`))
		return err == nil && said == text
	})
}

// asked waits until the page was about to ask for what is new some times.
func (b *browser) asked(times int) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`new Promise(done => {
		let left = %d;
		document.addEventListener('htmx:before:request', () => { if (--left === 0) done() });
	})`, times), chromedp.EvalAwaitPromise))
}

func TestOverviewAndEvents(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	b.goTo("/")
	b.sees("Nothing was sent in")
	b.sees("No devices yet")
	b.looks("overview-new")
	b.goTo("/events")
	b.sees("No events")
	b.looks("events-none")
	c, device := b.linked(k)

	for i := range 3 {
		var m postern.Message
		c.Call(
			http.MethodPost, "/v1/messages",
			map[string]any{"deviceId": device, "to": fmt.Sprint("+1555123456", i), "body": "hello"},
			http.StatusAccepted, &m,
		)
		c.AwaitMessage(m.ID, postern.Delivered)
	}
	b.until("the events of three messages", func() bool { return len(b.events()) == 9 })
	inbound(c, device, "a contact writes")
	b.until("the newest event on top", func() bool { return b.events()[0] == "message.received" })
	b.do(click(`#events li details summary`))
	b.awaits("a contact writes")
	b.looks("events")

	// Paused by keyboard, the page stays as it is, and the open event stays open.
	b.do(chromedp.Focus(chromedp.CSS(`button[data-pauses]`)), chromedp.KeyEvent(kb.Enter))
	b.awaits("Resume")
	b.announces("Paused")
	before := len(b.events())
	inbound(c, device, "while it is paused")
	b.asked(2)
	b.do(click(`#events li:nth-child(2) details summary`))
	b.until("the JSON of another event", func() bool {
		return b.number(`document.querySelectorAll("#events details:not(:has([data-loads]))").length`) == 2
	})
	if got := len(b.events()); got != before {
		t.Errorf("a paused page shows %d events, before it were %d", got, before)
	}
	b.looks("events-paused")
	if got := b.focused(); got != "Resume" {
		t.Errorf("the focus is on %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.announces("Resumed")
	b.until("the event of the pause", func() bool { return len(b.events()) == before+1 })
	b.sees("a contact writes")

	b.goTo("/events")
	b.do(chromedp.SetValue(chromedp.CSS("#type"), "message.received"))
	b.press("main form button")
	if got := fmt.Sprint(b.events()); got != "[message.received message.received]" {
		t.Errorf("the filter shows %s at %s", got, b.path())
	}
	b.press(`#events li a[href^="/devices/"]`)
	b.sees("Support")

	b.goTo("/")
	b.sees("3 messages were sent, 2 received, and 0 failed")
	for chart, want := range map[string][]string{
		"messages": {"3 2 0"}, "delivered": {"3 3 100", "3 3 200"}, // percent of one hour, or of two
		"attempts": {"0 0 0 0"},
	} {
		b.opensData(chart)
		if got := b.sums(chart); !slices.Contains(want, got) {
			t.Errorf("the table of %s adds up to %s, want %s", chart, got, want)
		}
		b.do(click("#" + chart + " summary"))
	}
	b.number("window.stays = 1")
	inbound(c, device, "while home is open")
	b.awaits("3 messages were sent, 3 received, and 0 failed")
	if b.number("window.stays ?? 0") != 1 {
		t.Error("the page was loaded again")
	}
	b.opensData("messages")
	b.looks("overview-used")
	b.press(`a[href="/?span=month"]`)
	b.sees("In the last 30 days, 3 messages were sent")
	b.looks("overview-month")
	b.press(`a[href="/usage"]`)
	b.sees("3 of ")
	b.picture("usage")
}
