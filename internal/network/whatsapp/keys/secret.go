package keys

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// secretRef names the secret of a message by a digest: ids are of any length,
// and nobody lists them.
func secretRef(chat, sender types.JID, id types.MessageID) ref {
	sum := sha256.Sum256([]byte(nameOf(chat.ToNonAD().String(), sender.ToNonAD().String(), id)))
	return ref{kindSecret, base64.RawURLEncoding.EncodeToString(sum[:])}
}

// PutMessageSecret keeps what answers to a message are encrypted with; the first
// one stays. It is on disk when the message is acknowledged, or leaves.
func (r *Ring) PutMessageSecret(ctx context.Context, chat, sender types.JID, id types.MessageID, secret []byte) error {
	k := secretRef(chat, sender, id)
	known, err := r.get(ctx, k)
	if err != nil || known.value != nil {
		return err
	}
	return r.noteOne(ctx, k, record{value: secret, at: now()})
}

// secretChunk bounds the rows of one operation of the writer, which others wait for.
const secretChunk = 500

// PutMessageSecrets keeps those of a history.
func (r *Ring) PutMessageSecrets(ctx context.Context, inserts []store.MessageSecretInsert) error {
	for chunk := range slices.Chunk(inserts, secretChunk) {
		if err := r.change(ctx, func(b *batch) error { return b.putSecrets(ctx, chunk) }); err != nil {
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

// GetMessageSecret gives the secret of a message, or nil, and who sent it. Chat
// and sender may be asked for by number or LID.
func (r *Ring) GetMessageSecret(ctx context.Context, chat, sender types.JID, id types.MessageID) ([]byte, types.JID, error) {
	chats, err := r.bothNames(ctx, chat.ToNonAD())
	if err != nil {
		return nil, types.EmptyJID, err
	}
	senders, err := r.bothNames(ctx, sender.ToNonAD())
	if err != nil {
		return nil, types.EmptyJID, err
	}
	for _, chat := range chats {
		for _, sender := range senders {
			rec, err := r.get(ctx, secretRef(chat, sender, id))
			if err != nil || rec.value != nil {
				return rec.value, sender, err
			}
		}
	}
	return nil, types.EmptyJID, nil
}
