package whatsapp

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// whatsmeow acknowledges some messages without an event: those that it cannot parse, with an
// error, and those whose decryption panics, as if they had been read. The vendor never sends
// them again. So they are reported here, before the acknowledgement is written; if that
// fails, the connection ends without it.

// acknowledging sees a stanza that whatsmeow is about to write. If it refuses a message for
// good, the host gets that first.
func (c *conn) acknowledging(node *waBinary.Node) {
	message := c.flight.answered(node)
	if message == nil || node.Tag != "ack" || c.unread == nil {
		return
	}
	code, _ := strconv.Atoi(fmt.Sprint(node.Attrs["error"])) // 0 for none
	if why, ok := refusal(code); ok && !c.unread(message, why) {
		c.refuse()
	}
}

// refusal returns why whatsmeow refuses a message with a code.
func refusal(code int) (why postern.FailureCode, ok bool) {
	switch code {
	case whatsmeow.NackParsingError:
		return postern.MalformedMessage, true
	case whatsmeow.NackInvalidProtobuf:
		return postern.MalformedContent, true
	}
	return "", false
}

// panicked sees that the decryption of a message panicked. The vendor sends it again at the
// next login; after panicTries tries it is reported and acknowledged.
func (c *conn) panicked(id string) {
	if c.setAside != nil && !c.setAside(id) {
		c.end(disconnected("decryption-panicked"))
	}
}

// lastTry counts a panic while a message was processed. After panicTries of them it reports
// the message, and returns true: the message may be acknowledged.
func (v *run) lastTry(id string) bool {
	name := v.session.account.String() + " " + id
	if v.session.driver.panics.count(name) < panicTries {
		return false
	}
	if message := v.flight.message(id); message != nil && !v.reportUnread(message, postern.DecryptionPanicked) {
		return false
	}
	v.session.driver.panics.forget(name)
	return true
}

// reportUnread reports a message that whatsmeow gave no event for, and returns whether it may
// be acknowledged. It may be called from any goroutine of whatsmeow.
func (v *run) reportUnread(node *waBinary.Node, why postern.FailureCode) (stored bool) {
	ctx := v.cli.BackgroundEventCtx
	if !v.calls.Enter() {
		return false
	}
	defer v.calls.Leave()
	defer func() {
		if recover() != nil {
			v.log.ErrorContext(ctx, "panic while reporting a message", "stack", string(debug.Stack()))
			stored = false
		}
	}()
	v.log.WarnContext(ctx, "a message cannot be read", "why", why)
	src := v.sourceOf(node)
	id, _ := node.Attrs["id"].(string)
	if id == "" || src.IsFromMe || !isOfChat(src) || isHidden(node) {
		return true
	}
	return v.storeUnread(ctx, src, network.Undecryptable{
		NetworkID: content.Clip(id, maxID), Why: why, At: sentAt(node, time.Now()),
	})
}

// storeUnread completes u with the sender, and gives it to the host.
func (v *run) storeUnread(ctx context.Context, src types.MessageSource, u network.Undecryptable) bool {
	at, known, err := v.place(ctx, src)
	if err != nil {
		return false
	}
	if !known {
		return true
	}
	u.Sender, u.ChatID, u.From, u.FromLID = at.sender(), at.chat, at.who.phone(), at.who.lid
	return v.stores(ctx, u)
}

// sourceOf returns who sent a message, and to which chat.
func (v *run) sourceOf(node *waBinary.Node) (src types.MessageSource) {
	ag := node.AttrGetter()
	from, role := ag.OptionalJIDOrEmpty("from"), "sender"
	src.Chat, src.Sender = from.ToNonAD(), from
	src.IsGroup = from.Server == types.GroupServer || from.Server == types.BroadcastServer
	if src.IsGroup {
		src.Sender, role = ag.OptionalJIDOrEmpty("participant"), "participant"
	}
	src.IsFromMe = src.Sender.User == v.session.account.User || src.Sender.User == v.cli.Store.GetLID().User
	if src.SenderAlt = ag.OptionalJIDOrEmpty(role + "_pn"); src.SenderAlt.IsEmpty() {
		src.SenderAlt = ag.OptionalJIDOrEmpty(role + "_lid")
	}
	return src
}

// isHidden reports whether the vendor marks a message as not worth showing if it cannot be
// decrypted.
func isHidden(node *waBinary.Node) bool {
	for _, enc := range node.GetChildrenByTag("enc") {
		if enc.AttrGetter().OptionalString("decrypt-fail") == string(events.DecryptFailHide) {
			return true
		}
	}
	return false
}

// sentAt returns the vendor's time of a message, or now if it cannot be read.
func sentAt(node *waBinary.Node, now time.Time) time.Time {
	text, _ := node.Attrs["t"].(string)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 || seconds > now.Add(24*time.Hour).Unix() {
		return now.UTC()
	}
	return time.Unix(seconds, 0).UTC()
}

// tries counts failures by name, over the connections of all accounts.
type tries struct {
	mu sync.Mutex // guards the field below
	n  map[string]int
}

func (t *tries) count(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil || len(t.n) >= maxTries {
		t.n = map[string]int{}
	}
	t.n[name]++
	return t.n[name]
}

func (t *tries) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.n, name)
}
