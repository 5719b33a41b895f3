package keys

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// mutedForever stands for [store.MutedForever].
const mutedForever = -1

// chat is what the account set for a chat, as it is kept.
type chat struct {
	Muted    int64 `json:"muted,omitempty"` // until, in Unix seconds
	Pinned   bool  `json:"pinned,omitempty"`
	Archived bool  `json:"archived,omitempty"`
}

func chatRef(jid types.JID) ref { return ref{kindChat, nameOf(jid.String())} }

func (r *Ring) editChat(ctx context.Context, jid types.JID, edit func(*chat)) error {
	return r.change(ctx, func(b *batch) error {
		var c chat
		if _, err := b.load(ctx, chatRef(jid), &c); err != nil {
			return err
		}
		edit(&c)
		return b.save(chatRef(jid), 0, c)
	})
}

// PutMutedUntil notes how long a chat is muted; the zero time is not at all.
func (r *Ring) PutMutedUntil(ctx context.Context, jid types.JID, until time.Time) error {
	return r.editChat(ctx, jid, func(c *chat) {
		switch {
		case until.Equal(store.MutedForever):
			c.Muted = mutedForever
		case until.IsZero():
			c.Muted = 0
		default:
			c.Muted = until.Unix()
		}
	})
}

// PutPinned notes whether a chat is pinned.
func (r *Ring) PutPinned(ctx context.Context, jid types.JID, pinned bool) error {
	return r.editChat(ctx, jid, func(c *chat) { c.Pinned = pinned })
}

// PutArchived notes whether a chat is archived.
func (r *Ring) PutArchived(ctx context.Context, jid types.JID, archived bool) error {
	return r.editChat(ctx, jid, func(c *chat) { c.Archived = archived })
}

// GetChatSettings gives what was set for a chat.
func (r *Ring) GetChatSettings(ctx context.Context, jid types.JID) (types.LocalChatSettings, error) {
	var c chat
	found, err := r.load(ctx, chatRef(jid), &c)
	settings := types.LocalChatSettings{Found: found, Pinned: c.Pinned, Archived: c.Archived}
	switch {
	case c.Muted == mutedForever:
		settings.MutedUntil = store.MutedForever
	case c.Muted > 0:
		settings.MutedUntil = time.Unix(c.Muted, 0)
	}
	return settings, err
}
