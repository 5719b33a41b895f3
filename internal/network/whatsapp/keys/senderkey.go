package keys

import (
	"context"

	"go.mau.fi/whatsmeow/store"
)

// senderKeys holds the ratchets of groups.
type senderKeys struct{ ring *Ring }

var _ store.SenderKeyStore = senderKeys{}

// senderKeyRef has the sender first, so that the records of a number share a
// prefix; see MigratePNToLID.
func senderKeyRef(group, user string) ref { return ref{kindSenderKey, nameOf(user, group)} }

// PutSenderKey stores the ratchet of a sender in a group.
func (s senderKeys) PutSenderKey(ctx context.Context, group, user string, session []byte) error {
	return s.ring.put(ctx, senderKeyRef(group, user), session)
}

// GetSenderKey returns the ratchet of a sender in a group, or nil.
func (s senderKeys) GetSenderKey(ctx context.Context, group, user string) ([]byte, error) {
	rec, err := s.ring.get(ctx, senderKeyRef(group, user))
	return rec.value, err
}
