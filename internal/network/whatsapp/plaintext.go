package whatsapp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mau.fi/whatsmeow/store"
)

// whatsmeow keeps the plaintext of a message, written together with the ratchet,
// until the host has stored the message. Clearing it needs no commit of its own:
// a plaintext that outlives a crash is found again only if the message comes
// again, and then the host knows it.

// DoDecryptionTxn runs fn in a transaction, which also clears what was handled
// before. What fn says about the message is passed on; that the transaction did
// not begin or commit is the store's failure.
func (g *guard) DoDecryptionTxn(ctx context.Context, fn func(context.Context) error) error {
	if g.isBroken() || !g.calls.enter() {
		return unavailable{errStore}
	}
	defer g.calls.leave()
	var verdict error
	err := g.clearAnd(ctx, func(ctx context.Context) error {
		verdict = fn(ctx)
		return verdict
	})
	if err == nil {
		return nil
	}
	g.forgetIdentities() // what was written is rolled back
	if verdict != nil {
		return err
	}
	return g.judge(ctx, err)
}

// clearAnd runs fn in a transaction that clears the plaintexts of handled messages.
func (g *guard) clearAnd(ctx context.Context, fn func(context.Context) error) error {
	g.mu.Lock()
	hashes := slices.Collect(maps.Keys(g.handled))
	g.mu.Unlock()
	err := g.AllSessionSpecificStores.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		for _, hash := range hashes {
			if err := g.AllSessionSpecificStores.ClearBufferedEventPlaintext(ctx, hash); err != nil {
				return fmt.Errorf("clear a plaintext: %w", err)
			}
		}
		return fn(ctx)
	})
	if err == nil {
		g.remember(func() {
			for _, hash := range hashes {
				delete(g.handled, hash)
			}
		})
	}
	return err //nolint:wrapcheck // whatsmeow's own error, back to whatsmeow
}

// GetBufferedEvent finds what was decrypted before; a nil plaintext means that
// it was handled.
func (g *guard) GetBufferedEvent(ctx context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	g.mu.Lock()
	handled := g.handled[hash]
	g.mu.Unlock()
	if handled {
		return &store.BufferedEvent{InsertTime: time.Now()}, nil
	}
	return ask(ctx, g, func() (*store.BufferedEvent, error) { return g.AllSessionSpecificStores.GetBufferedEvent(ctx, hash) })
}

// ClearBufferedEventPlaintext notes that a message was handled. Its plaintext is
// cleared with the next message, or after clearDelay.
func (g *guard) ClearBufferedEventPlaintext(_ context.Context, hash [32]byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handled[hash] = true
	if !g.clearing {
		g.clearing = true
		time.AfterFunc(clearDelay, g.clearWhileOpen)
	}
	return nil
}

// clearWhileOpen clears what no further message has cleared.
func (g *guard) clearWhileOpen() {
	g.remember(func() { g.clearing = false })
	if !g.isBroken() && g.calls.enter() {
		defer g.calls.leave()
		g.clearHandled(context.Background())
	}
}

// clearHandled clears what is left. A failure is the store's, and ends the
// connection if it is still there.
func (g *guard) clearHandled(ctx context.Context) {
	g.mu.Lock()
	idle := len(g.handled) == 0
	g.mu.Unlock()
	if idle {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	if err := g.clearAnd(ctx, func(context.Context) error { return nil }); err != nil {
		_ = g.judge(ctx, err) // the plaintexts stay until whatsmeow drops them, after 14 days
	}
}
