package browsertest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const contact = "+15551234567"

// api is a client for the workspace that was set up.
func api(t *testing.T, k *testkit.Kit) *testkit.Client {
	t.Helper()
	list, err := k.Gateway().Workspaces.List(t.Context(), access.Operator())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	k.SetPlan(list[0].ID, "growth")
	return k.Key(list[0].ID, gateway.NewKey{Name: "test"})
}

// talkOf is the conversation of a device with the contact.
func talkOf(device string) string {
	return "/messages/chats/" + strings.TrimPrefix(device, "/devices/") + "/" + url.PathEscape(contact)
}

// opens opens the part of a page in which a field is, by keyboard.
func (b *browser) opens(field string) {
	b.t.Helper()
	b.do(
		chromedp.Evaluate[chromedp.Void](
			`document.querySelector("`+field+`").closest("details").querySelector("summary").focus()`,
		),
		chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS(field)),
	)
}

// A text that was not sent is there again after a look at another page, and gone once it was sent.
func TestUnsentTextIsKept(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	chat := talkOf(device)
	written := func(want string) {
		t.Helper()
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.getElementById("body").value`))
		if b.must(err); got != want {
			t.Errorf("the field has %q, want %q", got, want)
		}
	}
	b.goTo(chat)
	b.fill("#body", "half a sent")
	b.goTo("/devices")
	b.goTo(chat)
	written("half a sent")
	b.fill("#body", "a sentence")
	b.press("#write button.btn-primary")
	b.awaits("a sentence")
	b.goTo(chat)
	written("")
	b.draftsOfNotes(chat, k)
}

// draftsOfNotes writes a note, which other forms leave alone, and somebody else's note replaces.
func (b *browser) draftsOfNotes(chat string, k *testkit.Kit) {
	b.t.Helper()
	written := func(want string) {
		b.t.Helper()
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.querySelector("[name=note]").value`))
		if b.must(err); got != want {
			b.t.Errorf("the note has %q, want %q", got, want)
		}
	}
	b.opens("[name=note]")
	b.fill("[name=note]", "Pays l")
	b.press(`main form:has(input[value="archive"]) button`)
	b.awaits("The conversation was archived.")
	written("Pays l")
	b.fill("[name=note]", "ate")
	b.press(`form:has([name=note]) button`)
	b.awaits("The note was saved.")
	written("Pays late")
	b.do(chromedp.Focus(chromedp.CSS("[name=note]")), chromedp.KeyEvent(kb.End))
	b.fill("[name=note]", ", always")
	b.goTo(chat)
	written("Pays late, always")
	b.notes(k, chat, "Pays early")
	b.goTo(chat)
	written("Pays early")
}

// notes is what somebody else notes about the conversation with the contact.
func (b *browser) notes(k *testkit.Kit, chat, text string) {
	b.t.Helper()
	list, err := k.Gateway().Workspaces.List(b.t.Context(), access.Operator())
	b.must(err)
	c, err := k.Gateway().Workspaces.Caller(b.t.Context(), access.Operator(), list[0].ID)
	b.must(err)
	device := postern.DeviceID(strings.Split(chat, "/")[3])
	b.must(k.Gateway().Chats.SetNote(b.t.Context(), c, device, contact, text))
}

// A contact's poll is answered by keyboard, the vote is changed, and removed.
func TestVotes(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	b.goTo(device + "/phone")
	b.opens("#of-question")
	b.fill("#of-question", "Where?", "#of-options", "At the office\nOnline")
	b.press(`details[open] form button`)
	b.goTo(talkOf(device))
	b.awaits("No votes yet.")
	b.press(`#talk a[href*="do=vote"]`)
	b.looks("chat-vote")
	b.stops(`document.activeElement.name === "option"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.stops(`document.activeElement.innerText === "Vote" && document.activeElement.localName === "button"`)
	b.enter()
	b.sees("The vote was accepted.")
	b.awaits("1 person voted.")
	b.sees("Change vote")
	b.looks("chat-voted")
	b.press(`#talk a[href*="do=vote"]`)
	b.do(click(`input[name="option"][value="0"]`))
	b.press("#write button.btn-primary")
	b.awaits("At the office\n1 vote")
	b.press(`#talk a[href*="do=vote"]`)
	b.press(`#write button[name="none"]`)
	b.sees("The vote is being removed.")
	b.awaits("No votes yet.")
}

// A message that waits is canceled in its conversation, and another one on its page.
func TestMessagesAreCanceled(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	c := api(t, k)
	var sent [2]postern.Message
	for i := range sent {
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": strings.TrimPrefix(device, "/devices/"), "to": contact, "body": "For tomorrow",
			"sendAt": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339),
		}, 202, &sent[i])
	}
	b.goTo(talkOf(device))
	b.press(`#talk li:first-of-type a[href*="message="]`)
	b.looks("chat-cancel")
	b.stops(`document.activeElement.innerText === "Cancel sending"`)
	b.enter()
	b.sees("The message was canceled.")
	b.sees("Canceled")
	own := "/messages/" + string(sent[1].ID)
	b.goTo(own)
	b.looks("message-scheduled")
	b.press(`form[action$="/cancel"] button`)
	b.sees("canceled before it was sent")
	b.looks("message-canceled")
	for _, m := range sent {
		var now postern.Message
		if c.Call("GET", "/v1/messages/"+string(m.ID), nil, 200, &now); now.Status != postern.Canceled {
			t.Errorf("the message is %s", now.Status)
		}
	}
}

// The contact calls, and the conversation shows it.
func TestCallsAreShown(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	b.goTo(device + "/phone")
	b.opens("#from-call")
	b.looks("phone-call")
	b.do(click(`input[name="video"]`))
	b.press(`details[open] form button`)
	b.sees("The contact called the device.")
	b.goTo(talkOf(device))
	b.awaits("Video call")
	b.looks("chat-call")
}

// A file is dropped onto the page for new messages, and sent to somebody new. A video has a poster.
func TestFilesAreSentToSomebodyNew(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	b.device(k)
	b.goTo("/messages/new")
	b.dropVideo(t)
	b.fill("#to", "12", "#body", "The film")
	b.do(click("main form button:not([type])"))
	b.awaits("Write a phone number as +")
	b.sees("film.mp4")
	b.looks("message-new-file")
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("to").value = ""`))
	b.fill("#to", contact)
	b.press("main form button:not([type])")
	b.sees("The message was accepted.")
	b.sees("The film")
	b.awaits("The network accepted the message.")
	b.looks("message-video")
	width, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](`new Promise((done) => {
		const poster = new Image()
		poster.onload = () => done(poster.naturalWidth)
		poster.onerror = () => done(0)
		poster.src = document.querySelector("video").poster
	})`, chromedp.EvalAwaitPromise))
	if b.must(err); width == 0 {
		t.Error("the video has no poster")
	}
	b.goTo("/messages/new")
	b.do(chromedp.Evaluate[chromedp.Void](chosen("file"), chromedp.EvalAwaitPromise))
	b.fill("#to", contact, "#body", "The gate")
	b.press("main form button:not([type])")
	b.awaits("The message was accepted.")
	b.sees("The gate")
}

// dropVideo drops a video onto a page.
func (b *browser) dropVideo(t *testing.T) {
	t.Helper()
	film, err := os.ReadFile("../../testkit/testdata/video.mp4")
	b.must(err)
	b.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const bytes = Uint8Array.from(atob("` + base64.StdEncoding.EncodeToString(film) + `"), (c) => c.charCodeAt(0))
		const transfer = new DataTransfer()
		transfer.items.add(new File([bytes], "film.mp4", { type: "video/mp4" }))
		const to = document.querySelector('[data-drops]')
		for (const kind of ['dragover', 'drop']) to.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }))
	})()`))
}

// A message is found by a word, and shown in its conversation although many came after it.
func TestMessagesAreFoundByWords(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	c := api(t, k)
	inbound := "/v1/sandbox" + device + "/inbound"
	for i, text := range append([]string{"Where is my Café order?"}, make([]string, 60)...) {
		if i > 0 {
			text = "Something else"
		}
		c.Call("POST", inbound, map[string]any{"from": contact, "body": text}, 200, nil)
	}
	testkit.Eventually(t, "the words of the messages", func() (bool, any) {
		var found struct{ Data []postern.Message }
		c.Call("GET", "/v1/messages?q=cafe", nil, 200, &found)
		return len(found.Data) == 1, len(found.Data)
	})
	testkit.Eventually(t, "all messages", func() (bool, any) {
		var all struct{ Data []postern.Message }
		c.Call("GET", "/v1/messages?limit=100", nil, 200, &all)
		return len(all.Data) == 61, len(all.Data)
	})
	b.goTo("/messages")
	b.fill("#q", "cafe ord")
	b.enter()
	b.sees("Where is my Café order?")
	b.looks("messages-words")
	b.press("main tbody th a")
	b.sees("Where is my Café order?")
	b.sees("Newest messages")
	b.looks("chat-found")
	shown, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`(() => {
		const m = document.querySelector("#talk li:target"), at = m.getBoundingClientRect()
		return m.innerText.includes("Café") && at.top >= 0 && at.bottom <= innerHeight
	})()`))
	if b.must(err); !shown {
		t.Error("the message that was found is not on the screen")
	}
}

// A conversation is marked as read, archived and muted with its buttons, and the list shows that; each has a way back.
func TestConversationIsPutAway(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	c := api(t, k)
	c.Call("POST", "/v1/sandbox"+device+"/inbound", map[string]any{"from": contact, "body": "Hello"}, 200, nil)
	b.goTo("/messages/chats")
	b.awaits("1 unread")
	presses := func(do, said string) {
		t.Helper()
		b.goTo(talkOf(device))
		b.press(`main form:has(input[value="` + do + `"]) button`)
		b.awaits(said)
	}
	presses("read", "The conversation is being marked as read.")
	colleague := b.another()
	colleague.goTo(talkOf(device))
	presses("archive", "The conversation was archived.")
	presses("mute", "The conversation was muted.")
	colleague.number("document.body.dispatchEvent(new Event('news')) ? 1 : 0")
	colleague.awaits("Archived · Muted")
	b.sees("Unarchive")
	b.looks("chat-away")
	b.goTo("/messages/chats")
	for _, text := range []string{"Archived", "Muted"} {
		b.sees(text)
	}
	if strings.Contains(b.text(), "unread") {
		t.Error("the conversation is not read")
	}
	var one postern.Chat
	path := "/v1" + device + "/chats/" + url.PathEscape(contact)
	if c.Call("GET", path, nil, 200, &one); !one.Archived || !one.Muted || one.UnreadCount != 0 {
		t.Errorf("the chat is %+v", one)
	}
	presses("unarchive", "The conversation is no longer archived.")
	presses("unmute", "The conversation is no longer muted.")
	if c.Call("GET", path, nil, 200, &one); one.Archived || one.Muted {
		t.Errorf("the chat is %+v", one)
	}
}

// The inbox is used with the keys alone, a day is chosen in the reader's time, and a label is made and taken off.
func TestInboxByKeyboard(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	c, device := b.linked(k)
	const other = "+15559990000"
	for _, from := range []string{other, contact} {
		c.Call("POST", "/v1/sandbox/devices/"+string(device)+"/inbound", map[string]any{"from": from, "body": "Hello"}, 200, nil)
	}
	b.goTo("/messages/chats")
	b.awaits(other)
	b.awaits(contact)
	on := func(number string) {
		t.Helper()
		b.until("the focus on "+number, func() bool {
			at, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.activeElement.href ?? ''"))
			b.must(err)
			return strings.HasSuffix(at, url.PathEscape(number))
		})
	}
	b.do(chromedp.Focus(chromedp.CSS("#q")), chromedp.KeyEvent(kb.ArrowDown))
	on(contact)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	on(other)
	inbound(c, device, "Are you there?")
	b.awaits("Are you there?")
	on(other)
	opens := func(number, key string, with ...chromedp.KeyOption) {
		t.Helper()
		b.do(chromedp.KeyEvent(key, with...), chromedp.WaitVisible(chromedp.CSS(`#chats a[aria-current][href$="`+number+`"]`)))
	}
	opens(other, kb.Enter)
	opens(contact, kb.ArrowUp, chromedp.KeyModifiers(chromedp.ModifierAlt))

	b.opens("form [name=name]")
	b.looks("chat-labels")
	b.fill(`form [name="name"]`, "New customer")
	b.press(`form:has([value="new-label"]) button`)
	b.sees("The label was created and added.")
	b.until("the label", func() bool { return b.number(`document.querySelectorAll("h1 ~ p .badge").length`) == 1 })
	b.opens("button[value=unlabel]")
	b.press(`button[value="unlabel"]`)
	b.sees("The label was removed.")

	b.goTo("/messages/chats")
	b.opens("#from")
	b.number(`(() => {
		const from = document.querySelector("#from")
		from.value = "2026-07-01"
		from.dispatchEvent(new Event("input", { bubbles: true }))
		from.dispatchEvent(new Event("change", { bubbles: true }))
		return 0
	})()`)
	ahead := b.number(`0 - new Date(2026, 6, 1).getTimezoneOffset()`)
	b.until("the messages of these days", func() bool {
		asked, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.search"))
		b.must(err)
		return strings.Contains(asked, fmt.Sprintf("from=2026-07-01&fromOffset=%d", ahead))
	})
	b.awaits("Hello")
	b.looks("inbox-days")

	// A time zone of the workspace takes the place of the reader's. On March 8, its clocks go forward.
	b.goTo("/people")
	b.do(chromedp.SetValue(chromedp.CSS("#timeZone"), "America/New_York"))
	b.press(`form[action="/people/workspace"] button`)
	b.sees("Times are in America/New York.")
	b.goTo("/messages")
	b.opens("#from")
	for day, want := range map[string]int{"from": -5 * 60, "until": -4 * 60} {
		got := b.number(`(() => {
			const day = document.querySelector("#` + day + `")
			day.value = "2026-03-08"
			day.dispatchEvent(new Event("input", { bubbles: true }))
			return Number(document.querySelector("#` + day + `Offset").value)
		})()`)
		if got != want {
			t.Errorf("%s: the clock is %d minutes ahead of UTC, want %d", day, got, want)
		}
	}
}

// Beside an open conversation there is the inbox, which marks it, follows what arrives, and finds messages while the reader
// types.
func TestInboxBesideAConversation(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	c := api(t, k)
	const other = "+15559990000"
	write := func(from, text string) {
		t.Helper()
		c.Call("POST", "/v1/sandbox"+device+"/inbound", map[string]any{"from": from, "body": text}, 200, nil)
	}
	evaluated := func(script string) string {
		t.Helper()
		s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script))
		b.must(err)
		return s
	}
	inbox := func(has, hasNot string) func() bool {
		return func() bool {
			text := evaluated(`document.querySelector('#inbox')?.innerText ?? ''`)
			return strings.Contains(text, has) && !strings.Contains(text, hasNot)
		}
	}
	write(contact, "Hello")
	b.goTo(talkOf(device))
	b.until("the inbox", inbox("Hello", "gate"))
	if at := evaluated(`document.querySelector('#inbox [aria-current]')?.getAttribute('href') ?? ''`); at != b.path() {
		t.Errorf("the inbox marks %q, want %q", at, b.path())
	}
	write(other, "The gate is open")
	b.until("what somebody else writes", inbox("The gate is open", "never"))
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#q').focus()`), chromedp.KeyEvent("gate"))
	b.until("what was found", inbox("The gate is open", "Hello"))
	b.looks("inbox-found")
	b.press(`#inbox li a`)
	b.awaits("The gate is open")
	if !strings.Contains(b.path(), url.PathEscape(other)) {
		t.Errorf("what was found leads to %s", b.path())
	}
	b.fill("#body", "Thank you")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#body').dispatchEvent(
		new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true, bubbles: true}))`))
	b.awaits("Delivered")
}
