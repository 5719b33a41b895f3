package keys

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// chatSettings holds the account's settings of chats.
type chatSettings struct{ ring *Ring }

var _ store.ChatSettingsStore = chatSettings{}

// mutedForever is the stored form of [store.MutedForever].
const mutedForever = -1

// chat is the settings of a chat as they are stored.
type chat struct {
	Muted    int64 `json:"muted,omitempty"` // until, in Unix seconds
	Pinned   bool  `json:"pinned,omitempty"`
	Archived bool  `json:"archived,omitempty"`
}

func chatRef(jid types.JID) ref { return ref{kindChat, nameOf(jid.String())} }

func (s chatSettings) edit(ctx context.Context, jid types.JID, change func(*chat)) error {
	return s.ring.change(ctx, func(b *batch) error {
		var c chat
		if _, err := b.load(ctx, chatRef(jid), &c); err != nil {
			return err
		}
		change(&c)
		return b.save(chatRef(jid), 0, c)
	})
}

// PutMutedUntil stores until when a chat is muted; the zero time unmutes it.
func (s chatSettings) PutMutedUntil(ctx context.Context, jid types.JID, until time.Time) error {
	return s.edit(ctx, jid, func(c *chat) {
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

// PutPinned stores whether a chat is pinned.
func (s chatSettings) PutPinned(ctx context.Context, jid types.JID, pinned bool) error {
	return s.edit(ctx, jid, func(c *chat) { c.Pinned = pinned })
}

// PutArchived stores whether a chat is archived.
func (s chatSettings) PutArchived(ctx context.Context, jid types.JID, archived bool) error {
	return s.edit(ctx, jid, func(c *chat) { c.Archived = archived })
}

// GetChatSettings returns the settings of a chat.
func (s chatSettings) GetChatSettings(ctx context.Context, jid types.JID) (types.LocalChatSettings, error) {
	var c chat
	found, err := s.ring.load(ctx, chatRef(jid), &c)
	settings := types.LocalChatSettings{Found: found, Pinned: c.Pinned, Archived: c.Archived}
	switch {
	case c.Muted == mutedForever:
		settings.MutedUntil = store.MutedForever
	case c.Muted > 0:
		settings.MutedUntil = time.Unix(c.Muted, 0)
	}
	return settings, err
}
