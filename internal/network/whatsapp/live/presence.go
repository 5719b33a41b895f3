package live

import (
	"context"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// Presence implements [network.Presence].
type Presence struct {
	Enter

	Name   func() string // of the account, as others see it; "" if it is not known
	Person func(ctx context.Context, chat string) (types.JID, error)
	Online *Online
}

var _ network.Presence = Presence{}

// Show makes the account available, or ends that.
func (p Presence) Show(ctx context.Context, available bool) error {
	_, err := ask(ctx, p.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		p.Online.set(available)
		err := p.Online.Tell(ctx, cli, p.Name())
		if err != nil {
			p.Online.set(false)
		}
		return struct{}{}, err
	})
	return err
}

// Subscribe asks for the presence of the person of a direct chat.
func (p Presence) Subscribe(ctx context.Context, chat string) error {
	to, err := p.Person(ctx, chat)
	if err == nil {
		_, err = ask(ctx, p.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
			return struct{}{}, cli.SubscribePresence(ctx, to)
		})
	}
	return err
}

// Online is whether a connection has made the account available, and what it was told of others since. Its zero value is
// unavailable.
type Online struct {
	mu        sync.Mutex // guards the fields below
	available bool
	seen      map[types.JID]time.Time // until when somebody was online, as far as is known
}

const (
	maxSeen = 1000        // people whose times are remembered
	drift   = time.Minute // between the network's clock and ours
)

// Begin forgets everything, for a new connection.
func (o *Online) Begin() { o.set(false) }

func (o *Online) set(available bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.available = available
	if !available {
		o.seen = nil
	}
}

// Available reports whether the account is available.
func (o *Online) Available() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.available
}

// Tell tells the network the name of the account, and whether it is available.
func (o *Online) Tell(ctx context.Context, cli *whatsmeow.Client, name string) error {
	attrs := waBinary.Attrs{"type": string(types.PresenceUnavailable)}
	if o.Available() {
		attrs["type"] = string(types.PresenceAvailable)
	}
	if name != "" {
		attrs["name"] = name
	}
	//nolint:staticcheck // marked as dangerous, but whatsmeow's own reads a name that may change meanwhile
	return cli.DangerousInternals().SendNode(ctx, waBinary.Node{Tag: "presence", Attrs: attrs})
}

// IsNews reports whether a presence is newer than what is known of the person: the network may repeat an old one.
func (o *Online) IsNews(evt *events.Presence) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	who, until := evt.From.ToNonAD(), evt.LastSeen
	if !evt.Unavailable {
		until = time.Now().Add(-drift)
	}
	if until.IsZero() {
		return true // the person does not show it
	}
	if until.Before(o.seen[who]) && evt.Unavailable {
		return false
	}
	if o.seen == nil || len(o.seen) >= maxSeen {
		o.seen = map[types.JID]time.Time{}
	}
	o.seen[who] = until
	return true
}

// TypingOf returns what somebody writes; ok is false if it is nothing that is known.
func TypingOf(evt *events.ChatPresence) (t postern.Typing, ok bool) {
	switch {
	case evt.State == types.ChatPresencePaused:
		return postern.TypingPaused, true
	case evt.State != types.ChatPresenceComposing:
		return "", false
	case evt.Media == types.ChatPresenceMediaAudio:
		return postern.TypingVoice, true
	}
	return postern.TypingText, true
}
