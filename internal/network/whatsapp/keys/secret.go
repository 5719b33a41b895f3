package keys

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// messageSecrets holds the secrets that replies to some messages, such as votes
// in a poll, are encrypted with.
type messageSecrets struct {
	ring *Ring
	lids lids
}

var _ store.MsgSecretStore = messageSecrets{}

// secretRef names a secret by a digest, because ids have any length and secrets
// are never listed.
func secretRef(chat, sender types.JID, id types.MessageID) ref {
	sum := sha256.Sum256([]byte(nameOf(chat.ToNonAD().String(), sender.ToNonAD().String(), id)))
	return ref{kindSecret, base64.RawURLEncoding.EncodeToString(sum[:])}
}

// PutMessageSecret stores the secret of a message, unless one is stored. It is
// on disk when the message is acknowledged or sent.
func (s messageSecrets) PutMessageSecret(
	ctx context.Context, chat, sender types.JID, id types.MessageID, secret []byte,
) error {
	k := secretRef(chat, sender, id)
	known, err := s.ring.get(ctx, k)
	if err != nil || known.value != nil {
		return err
	}
	return s.ring.putLater(ctx, k, record{value: secret, at: now()})
}

// PutMessageSecrets stores the secrets of a synced history.
func (s messageSecrets) PutMessageSecrets(ctx context.Context, inserts []store.MessageSecretInsert) error {
	for chunk := range slices.Chunk(inserts, secretChunk) {
		if err := s.ring.change(ctx, func(b *batch) error { return b.putSecrets(ctx, chunk) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) putSecrets(ctx context.Context, inserts []store.MessageSecretInsert) error {
	at := now()
	for _, i := range inserts {
		k := secretRef(i.Chat, i.Sender, i.ID)
		known, err := b.get(ctx, k)
		if err != nil {
			return err
		}
		if known.value == nil {
			b.put(k, record{value: i.Secret, at: at})
		}
	}
	return nil
}

// GetMessageSecret returns the secret of a message, or nil, and the sender under
// whom it is stored. The chat and the sender may be given by number or LID.
func (s messageSecrets) GetMessageSecret(
	ctx context.Context, chat, sender types.JID, id types.MessageID,
) ([]byte, types.JID, error) {
	chats, err := s.lids.bothNames(ctx, chat.ToNonAD())
	if err != nil {
		return nil, types.EmptyJID, err
	}
	senders, err := s.lids.bothNames(ctx, sender.ToNonAD())
	if err != nil {
		return nil, types.EmptyJID, err
	}
	for _, chat := range chats {
		for _, sender := range senders {
			rec, err := s.ring.get(ctx, secretRef(chat, sender, id))
			if err != nil || rec.value != nil {
				return rec.value, sender, err
			}
		}
	}
	return nil, types.EmptyJID, nil
}
