package browsertest

import (
	"net/http"
	"strings"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// stops counts how often the tab key is pressed until something has the focus.
func (b *browser) stops(script string) (n int) {
	b.t.Helper()
	for n = 1; n < 60; n++ {
		b.do(chromedp.KeyEvent(kb.Tab))
		there, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](script))
		b.must(err)
		if there {
			return n
		}
	}
	b.t.Fatalf("by keyboard %s is never reached", script)
	return 0
}

// A contact writes, somebody answers by hand, and sees by the page alone what
// becomes of it.
func TestMessages(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	for _, path := range []string{"/messages", "/messages/chats", "/messages/new"} {
		b.goTo(path)
		b.looks("none" + strings.ReplaceAll(path, "/", "-"))
	}
	device := b.linkDevice()
	b.goTo(device + "/phone")
	for _, text := range []string{
		"Hello, are you there?", "<b>My order</b> has not come. " + strings.Repeat("I have waited long. ", 12),
	} {
		b.fill("#body", text)
		b.press(`form[action$="/write"] button`)
	}

	b.goTo("/messages/chats")
	b.awaits("+15551234567")
	b.looks("chats")
	b.press(`main li a`)
	talk := b.path()
	b.focuses("body")
	b.awaits("<b>My order</b>")
	b.do(chromedp.KeyEvent("I look after it."))
	b.stops(`document.activeElement.innerText === "Send"`)
	b.enter()
	b.awaits("I look after it.")
	b.awaits("Delivered")
	contactReads(t, b, device)
	b.goTo(talk)
	b.awaits("Read")
	b.looks("chat")

	// What comes is there without a reload, beside a text that is being written.
	b.do(chromedp.Evaluate[chromedp.Void](`window.stays = true`), chromedp.KeyEvent("half a sen"))
	b.do(chromedp.Evaluate[chromedp.Void](
		`fetch("`+device+`/phone/write", {method: "POST", headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: "from=%2B15551234567&body=Thank+you!"}).then(() => {})`,
		chromedp.EvalAwaitPromise,
	))
	b.awaits("Thank you!")
	kept, err := chromedp.Run(
		b.ctx, chromedp.Evaluate[string](`window.stays ? document.getElementById("body").value : "reloaded"`),
	)
	if b.must(err); kept != "half a sen" {
		t.Errorf("after a new message the field holds %q", kept)
	}

	b.goTo("/messages")
	b.fill("#q", "+1 555 123-4567")
	b.enter()
	b.sees("I look after it.")
	b.sees("Thank you!")
	b.looks("messages")
	b.goTo("/messages?q=hello")
	b.looks("messages-refused")
	b.goTo("/messages?direction=outbound")
	b.press("main tbody th a")
	b.sees("Accepted")
	b.sees("Read")
	b.looks("message")
	b.do(click("main details summary"))
	b.looks("message-json")
	newMessage(b)
	b.goTo("/devices")
	if status := exported(t, b); status != http.StatusOK {
		t.Errorf("the export is answered %d", status)
	}
}

// contactReads lets the simulated contact read what was sent.
func contactReads(t *testing.T, b *browser, device string) {
	t.Helper()
	b.goTo(device + "/phone")
	b.awaits("Mark as read")
	b.press(`form[action*="/phone/read/"] button`)
}

// newMessage sends to somebody whom the network does not know, and is told so.
func newMessage(b *browser) {
	b.t.Helper()
	b.goTo("/messages/new")
	b.focuses("to")
	b.looks("message-new")
	b.fill("#to", "12", "#body", "Is anybody there?")
	b.press("main form button:not([type])")
	b.focuses("to")
	b.sees("Write a phone number as +")
	b.looks("message-new-refused")
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("to").value = ""`))
	b.fill("#to", "+1 555 987-6543")
	b.press("main form button:not([type])")
	b.sees("The message was accepted.")
	b.sees("Is anybody there?")
	b.awaits("The network accepted the message.")
	b.looks("message-sent")
}

// exported is the status of the file, asked for by the page.
func exported(t *testing.T, b *browser) int {
	t.Helper()
	status, err := chromedp.Run(
		b.ctx,
		chromedp.Evaluate[int](
			`fetch("/messages.csv").then(r => r.text().then(text => text.includes("I look after it.") ? r.status : 0))`,
			chromedp.EvalAwaitPromise,
		),
	)
	b.must(err)
	return status
}
