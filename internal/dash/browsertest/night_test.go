package browsertest

import (
	"net/http"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// waitingAtNight is how many messages wait for the device that is cut off.
const waitingAtNight = 300

// One device is cut off with messages that wait, one is in conflict, one was logged out, and the only endpoint fails.
// The first page, which stays open, names each of them with its age and a button, and the buttons end them.
func TestNight(t *testing.T) {
	t.Parallel()
	for name, size := range map[string][2]int64{"laptop": {1280, 900}, "phone": {390, 844}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			night(t, "night-"+name, size)
		})
	}
}

func night(t *testing.T, name string, size [2]int64) {
	k := testkit.Start(t)
	h := receive(t)
	h.greets.Store(true)
	b := open(t, k.URL())
	b.setUp(k)
	c, cut := b.linked(k)
	fault := func(number string, f vendorsim.Fault) {
		t.Helper()
		if err := k.VendorOfSetUp().Fault(t.Context(), number, f); err != nil {
			t.Fatal(err)
		}
	}
	looks := func(when string) {
		t.Helper()
		b.looks(name + when)
		b.do(chromedp.EmulateViewport(size[0], size[1]))
	}
	c.Call(http.MethodPatch, "/v1/devices/"+string(cut), map[string]any{"name": "Cut off"}, http.StatusOK, nil)
	torn, gone := c.Link("+15550003333"), c.Link("+15550004444")
	c.Call(http.MethodPost, "/v1/webhooks", map[string]any{"url": h.URL, "description": "CRM"}, http.StatusCreated, nil)
	b.do(chromedp.EmulateViewport(size[0], size[1]))
	b.goTo("/")
	b.awaits("All is well")
	b.awaits("3 devices up")
	looks("-before")
	b.number("window.stays = 1")

	h.status.Store(http.StatusServiceUnavailable)
	fault(string(c.Device(cut).PhoneNumber), "offline:3600")
	c.Await(cut, postern.Disconnected)
	for range waitingAtNight {
		c.Call(http.MethodPost, "/v1/messages", map[string]any{
			"deviceId": cut, "to": "+15005550003", "body": "Hello", "whenDisconnected": "queue",
		}, http.StatusAccepted, nil)
	}
	fault("+15550003333", "conflict")
	fault("+15550004444", "logout")
	caused := time.Now()
	for _, text := range []string{
		"Cut off is not connected", "300 messages are waiting.",
		torn.Name + " is connected elsewhere", gone.Name + " was logged out",
		"Webhook CRM is failing", "attempts failed.", "4 problems", "3 of 3 devices down", "1 of 1 webhooks failing",
		"300 messages waiting for up to",
	} {
		b.awaits(text)
	}
	t.Logf("home named every problem %.1f s after the last fault", time.Since(caused).Seconds())
	if n := b.number(`document.querySelectorAll("#attention li:has(time[data-ago]):has(button)").length`); n != 4 {
		t.Errorf("%d of 4 problems have an age and a button", n)
	}
	if b.number("window.stays ?? 0") != 1 {
		t.Error("the page was loaded again")
	}
	looks("")

	row := func(kind, id string) string { return "#trouble-" + kind + "-" + id + " button" }
	fault(string(c.Device(cut).PhoneNumber), "offline:0")
	b.press(row("device-down", string(cut)))
	c.Await(cut, postern.Connected)
	b.press(row("device-down", string(torn.ID)))
	c.Await(torn.ID, postern.Connected)
	h.status.Store(http.StatusOK)
	b.press(`form[action$="/recover"] button`)
	b.awaits("1 problem")
	b.press(row("device-down", string(gone.ID)))
	b.do(chromedp.WaitVisible(chromedp.CSS(`form[action$="/phone/scan"] button`)))
	b.press(`form[action$="/phone/scan"] button`)
	c.Await(gone.ID, postern.Connected)
	b.goTo("/")
	b.awaits("All is well")
	b.awaits("3 devices up")
	looks("-after")
}

// lostLater notices the end of the connection two hours after the last answer, and is 1 if the page names the time of
// that answer.
const lostLater = `(() => {
	const answered = Date.now(), now = Date.now
	const hour = (at) => new Intl.DateTimeFormat(undefined, {hour: 'numeric'}).formatToParts(at).find((p) => p.type === 'hour').value
	Date.now = () => answered + 2 * 3600 * 1000
	dispatchEvent(new Event('offline'))
	Date.now = now
	const said = document.querySelector('[data-live]').textContent.match(/lost at (.*, )?(\d+):/)?.[2]
	return Number(said === hour(answered) || said === hour(answered - 60 * 1000))
})()`

// A page says that its connection to the server is lost, and that it is back.
func TestPageSaysThatItIsCutOff(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := start(t, k.URL()) // the browser reports the requests that are refused
	b.setUp(k)
	b.goTo("/devices")
	offline := func(is bool) {
		t.Helper()
		_, err := chromedp.Call(b.ctx, network.OverrideNetworkState, network.OverrideNetworkStateParams{
			Offline: is, DownloadThroughput: -1, UploadThroughput: -1,
		})
		b.must(err)
	}
	b.awaits("Live")
	offline(true)
	b.awaits("Connection lost at ")
	b.looks("cut-off")
	offline(false)
	b.awaits("Live")
	if b.number(lostLater) != 1 {
		t.Errorf("after two hours without an answer, the page says %.200s", b.text())
	}
	b.number("dispatchEvent(new Event('online')) ? 1 : 0")
	b.awaits("Live")
	k.Stop()
	b.awaits("Connection lost at ")
}
