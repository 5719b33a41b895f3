package live

import (
	"context"
	"strings"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
)

// CheckNumbers asks which numbers are on the network.
func CheckNumbers(ctx context.Context, enter Enter, numbers []string) ([]postern.CheckedNumber, error) {
	return ask(ctx, enter, func(ctx context.Context, cli *whatsmeow.Client) ([]postern.CheckedNumber, error) {
		found, err := cli.IsOnWhatsApp(ctx, numbers)
		if err != nil {
			return nil, err
		}
		answers := map[string]types.IsOnWhatsAppResponse{}
		for _, f := range found {
			answers["+"+strings.TrimPrefix(f.Query, "+")] = f
		}
		list := make([]postern.CheckedNumber, len(numbers))
		for i, number := range numbers {
			answer, ok := answers[number]
			if !ok {
				return nil, errNoAnswer
			}
			list[i] = checked(number, answer)
		}
		return list, nil
	})
}

func checked(number string, f types.IsOnWhatsAppResponse) postern.CheckedNumber {
	c := postern.CheckedNumber{PhoneNumber: number, Exists: f.IsIn}
	if !f.IsIn {
		return c
	}
	p := person(f.JID, f.PhoneNumber)
	c.NetworkNumber, c.LID = p.PhoneNumber, p.LID
	if f.VerifiedName != nil && f.VerifiedName.Details != nil {
		c.BusinessName = postern.Maybe(clip(f.VerifiedName.Details.GetVerifiedName(), maxName))
	}
	return c
}

const maxName = 200 // characters

// Typing shows in the chat with an address that the account types or records, or no longer does. Nobody confirms it.
func Typing(ctx context.Context, enter Enter, to types.JID, t postern.Typing) error {
	_, err := ask(ctx, enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		state, media := types.ChatPresenceComposing, types.ChatPresenceMediaText
		switch t {
		case postern.TypingPaused:
			state = types.ChatPresencePaused
		case postern.TypingVoice:
			media = types.ChatPresenceMediaAudio
		case postern.TypingText:
		}
		return struct{}{}, cli.SendChatPresence(ctx, to, state, media)
	})
	return err
}

// chatAddress returns the address of a chat: the LID of a number, if it is known.
func chatAddress(ctx context.Context, cli *whatsmeow.Client, chat string) (types.JID, error) {
	if lid, ok := strings.CutPrefix(chat, "lid:"); ok {
		return types.NewJID(lid, types.HiddenUserServer), nil
	}
	if postern.IsGroup(chat) {
		return address(chat), nil
	}
	pn := numberAddress(chat)
	lid, err := cli.Store.LIDs.GetLIDForPN(ctx, pn)
	if err != nil || lid.IsEmpty() {
		return pn, err
	}
	return lid.ToNonAD(), nil
}

// Ringing are the calls that ring. Its zero value is empty.
type Ringing struct {
	mu    sync.Mutex
	calls []ringing // the oldest first
}

type ringing struct {
	id      string
	creator types.JID // as the network named the caller: only by this name do the phones stop ringing
	since   time.Time // by the network's clock
}

const (
	maxRinging = 32               // calls that are remembered
	ringTime   = 90 * time.Second // longer than a call rings
)

// Begin notes that a call rings since a time.
func (r *Ringing) Begin(id string, creator types.JID, since time.Time) {
	r.End(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) == maxRinging {
		r.calls = r.calls[1:]
	}
	r.calls = append(r.calls, ringing{id, creator, since})
}

// End notes that a call no longer rings.
func (r *Ringing) End(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.calls {
		if c.id == id {
			r.calls = append(r.calls[:i:i], r.calls[i+1:]...)
			return
		}
	}
}

// Reject rejects a call that rings.
func (r *Ringing) Reject(ctx context.Context, enter Enter, id string) error {
	creator, ok := r.creator(id)
	if !ok {
		return network.ErrNoSuchCall
	}
	_, err := ask(ctx, enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		return struct{}{}, cli.RejectCall(ctx, creator, id)
	})
	if err == nil {
		r.End(id)
	}
	return err
}

func (r *Ringing) creator(id string) (types.JID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.id == id && time.Since(c.since) < ringTime {
			return c.creator, true
		}
	}
	return types.EmptyJID, false
}
