package whatsapp

import (
	"context"
	"slices"
	"sync"

	"postern/internal/network"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// ahead are the messages of a connection that are being stored. whatsmeow handles one stanza after
// the other, and acknowledges a message after its handler has returned; so each message would wait
// for a commit of its own. Instead, the handler returns before the commit and reports that it
// failed, so that whatsmeow acknowledges nothing, and a goroutine acknowledges the messages in
// their order, each when it is durable.
//
// Whatever is not just a new message waits until they are stored: it may be about one of them.
type ahead struct {
	finish func(arriving)

	mu      sync.Mutex // guards the fields below
	list    []arriving // oldest first
	running bool
	left    chan struct{} // closed when there is one less; nil if nobody waits for that
}

// arriving is a message that is being stored.
type arriving struct {
	info      types.MessageInfo
	node      *waBinary.Node
	plaintext string       // see keys.Ring.Plaintext
	durable   func() error // waits for the keys that the message changed
	stored    func() error // waits for the host
}

// add waits until there is room, and lets a message be finished.
func (a *ahead) add(ctx context.Context, m arriving) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.await(ctx, maxAhead-1)
	a.list = append(a.list, m)
	if !a.running {
		a.running = true
		go a.run()
	}
}

// run finishes messages until there are none.
func (a *ahead) run() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.list) > 0 {
		m := a.list[0]
		a.mu.Unlock()
		a.finish(m)
		a.mu.Lock()
		a.list = a.list[1:]
		if a.left != nil {
			close(a.left)
			a.left = nil
		}
	}
	a.running, a.list = false, nil
}

// has reports whether a message is being stored.
func (a *ahead) has(m types.MessageInfo) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.list, func(one arriving) bool {
		return one.info.ID == m.ID && one.info.Sender == m.Sender
	})
}

// settle waits until all messages are finished, or ctx is done.
func (a *ahead) settle(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.await(ctx, 0)
}

// await waits until there are at most so many messages, or ctx is done. The caller holds mu.
func (a *ahead) await(ctx context.Context, most int) {
	for len(a.list) > most && ctx.Err() == nil {
		if a.left == nil {
			a.left = make(chan struct{})
		}
		left := a.left
		a.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
		}
		a.mu.Lock()
	}
}

// acknowledgeable returns the stanza of a message, if the message can be stored while others are:
// it refers to none, and it is known how to acknowledge it.
func (v *run) acknowledgeable(evt *events.Message, u network.Inbound) *waBinary.Node {
	if u.QuoteOf != "" || u.About != "" || u.BetterOf != "" {
		return nil
	}
	node := v.flight.message(evt.Info.ID)
	if node == nil || len(node.GetChildrenByTag("enc")) != 1 {
		return nil
	}
	if from, _ := node.Attrs["from"].(types.JID); from != evt.Info.Sender {
		return nil // another message with the same id
	}
	return node
}

// startStoring gives a message to the host, and lets it be acknowledged when it is durable. A
// second copy of one that is being stored is only acknowledged.
func (v *run) startStoring(ctx context.Context, u network.Inbound, m arriving) outcome {
	if v.ahead.has(m.info) {
		v.ahead.settle(ctx)
		return storedIf(ctx.Err() == nil)
	}
	wait, err := v.begin(ctx, u)
	if err != nil || !v.calls.Enter() {
		v.notStored(ctx, err)
		return refused
	}
	m.stored = wait
	v.ahead.add(ctx, m)
	return begun
}

// acknowledge acknowledges a message once it is durable. If it is not stored, the connection ends,
// and nothing is acknowledged any more.
func (v *run) acknowledge(m arriving) {
	defer v.calls.Leave()
	ctx := v.cli.BackgroundEventCtx
	if err := m.stored(); err != nil {
		v.notStored(ctx, err)
		v.refuse()
		return
	}
	if m.durable() != nil || v.keys.Handled(ctx, m.plaintext) != nil {
		v.refuse()
		return
	}
	//nolint:staticcheck // marked as dangerous, but whatsmeow offers no other way
	v.cli.DangerousInternals().SendMessageReceipt(ctx, &m.info, m.node)
}
