// Package retries answers recipients who could not decrypt a message and ask for it again.
//
// whatsmeow handles each of these requests in a goroutine of its own, without the lock that it holds while it sends a
// message. The two could then encrypt with the same key of a Signal session. The recipient can read only one of such
// messages, and the other one is lost although it is confirmed as delivered. So the requests are handled one at a time
// here, and a request whose session has changed meanwhile is handled again.
package retries

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"postern/internal/network/whatsapp/keys"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

const (
	// tries bounds how often a request is handled because a session has changed. whatsmeow ignores the tenth time that it
	// handles a request of one device for one message, and here it handles each at least twice.
	tries = 3
	// maxWaiting bounds the requests that are remembered until it is their turn. The turn of a request for an unknown
	// message never comes. With more of them, one is forgotten, and whatsmeow answers it on its own.
	maxWaiting = 512
)

// Answers answers the requests on one connection.
type Answers struct {
	client *whatsmeow.Client
	log    *slog.Logger
	end    func()

	mu      sync.Mutex // guards the fields below
	waiting map[request]*waBinary.Node
	handles bool // a request
	reached bool // whatsmeow would encrypt the answer to it
}

// request identifies a request.
type request struct {
	by      types.JID
	message types.MessageID
	count   int
}

// Use makes a client answer through the [Answers] that it returns. end ends the connection, so that nothing is
// acknowledged afterwards.
func Use(client *whatsmeow.Client, log *slog.Logger, end func()) *Answers {
	a := &Answers{client: client, log: log, end: end, waiting: make(map[request]*waBinary.Node)}
	client.SetMaxParallelRetryReceiptHandling(1)
	client.PreRetryCallback = a.before
	return a
}

// Saw notes a stanza that was received, before whatsmeow handles it.
func (a *Answers) Saw(node *waBinary.Node) {
	if node.Tag != "receipt" {
		return
	}
	retry, ok := node.GetOptionalChildByTag("retry")
	if kind, _ := node.Attrs["type"].(string); kind != string(types.ReceiptTypeRetry) || !ok {
		return
	}
	from := node.AttrGetter()
	r := request{by: from.OptionalJIDOrEmpty("participant")}
	if r.by.IsEmpty() {
		r.by = from.OptionalJIDOrEmpty("from")
	}
	about := retry.AttrGetter()
	r.message, r.count = about.String("id"), about.Int("count")
	a.mu.Lock()
	defer a.mu.Unlock()
	if !about.OK() {
		return
	}
	for other := range a.waiting {
		if len(a.waiting) < maxWaiting {
			break
		}
		delete(a.waiting, other)
	}
	a.waiting[r] = node
}

// before is called by whatsmeow before it encrypts an answer. It handles the request itself, and lets whatsmeow go on
// only within that.
func (a *Answers) before(receipt *events.Receipt, id types.MessageID, count int, _ *waE2E.Message) bool {
	node, within := a.begin(request{receipt.Sender, id, count})
	if within || node == nil {
		return true
	}
	defer a.done()
	err := a.handle(receipt, node)
	switch {
	case err == nil && a.wasReached():
	case errors.Is(err, context.Canceled), errors.Is(err, whatsmeow.ErrNotConnected):
		a.end() // without an acknowledgement the request comes again
	default:
		a.log.Warn("a recipient who asked for a message again did not get it", "network_id", id, "count", count)
	}
	return false
}

// handle answers a request, again if a session has changed meanwhile.
func (a *Answers) handle(receipt *events.Receipt, node *waBinary.Node) (err error) {
	for range tries {
		//nolint:staticcheck // nothing else handles a request
		err = a.client.DangerousInternals().HandleRetryReceipt(keys.Apart(a.client.BackgroundEventCtx), receipt, node)
		if !errors.Is(err, keys.ErrStale) {
			break
		}
	}
	return err
}

// begin returns the stanza of a request whose turn it is, or nil; within reports that the request is being handled by
// handle. whatsmeow has one turn at a time.
func (a *Answers) begin(r request) (node *waBinary.Node, within bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.handles {
		a.reached = true
		return nil, true
	}
	node = a.waiting[r]
	delete(a.waiting, r)
	a.handles, a.reached = node != nil, false
	return node, false
}

// wasReached reports whether whatsmeow went as far as to encrypt an answer: it ignores what was asked for too often.
func (a *Answers) wasReached() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reached
}

func (a *Answers) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handles = false
}
