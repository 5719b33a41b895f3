package browsertest

import (
	"net/http"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// One device is cut off with messages that wait, one is in conflict, one was logged out, and the only endpoint fails.
// The first page, which stays open, names each of them with a button, and the buttons end them.
func TestNight(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	h := receive(t)
	h.greets.Store(true)
	b := open(t, k.URL())
	b.setUp(k.SetUpURL())
	c, cut := b.linked(k)
	fault := func(number string, f vendorsim.Fault) {
		t.Helper()
		if err := k.VendorOfSetUp().Fault(t.Context(), number, f); err != nil {
			t.Fatal(err)
		}
	}
	c.Call(http.MethodPatch, "/v1/devices/"+string(cut), map[string]any{"name": "Cut off"}, http.StatusOK, nil)
	torn, gone := c.Link("+15550003333"), c.Link("+15550004444")
	c.Call(http.MethodPost, "/v1/webhooks", map[string]any{"url": h.URL, "description": "CRM"}, http.StatusCreated, nil)
	b.goTo("/")
	b.awaits("All is well")
	b.awaits("3 devices up")
	b.looks("night-before")

	h.status.Store(http.StatusServiceUnavailable)
	fault(string(c.Device(cut).PhoneNumber), "offline:3600")
	c.Await(cut, postern.Disconnected)
	for range 3 {
		c.Call(http.MethodPost, "/v1/messages", map[string]any{
			"deviceId": cut, "to": "+15005550003", "body": "Hello", "whenDisconnected": "queue",
		}, http.StatusAccepted, nil)
	}
	fault("+15550003333", "conflict")
	fault("+15550004444", "logout")
	for _, text := range []string{
		"Cut off is not connected", "3 messages wait.", torn.Name + " is connected elsewhere", gone.Name + " was logged out",
		"Webhook CRM is failing", "attempts failed.", "4 problems", "3 of 3 devices down", "1 of 1 webhooks failing",
		"3 messages waiting, the oldest for",
	} {
		b.awaits(text)
	}
	b.looks("night")

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
	b.looks("night-after")
}

// A page says that its connection to the server is lost, and that it is back.
func TestPageSaysThatItIsCutOff(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := start(t, k.URL()) // the browser reports the requests that are refused
	b.setUp(k.SetUpURL())
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
	b.awaits("Connection lost")
	offline(false)
	b.awaits("Live")
	k.Stop()
	b.awaits("Connection lost")
}
