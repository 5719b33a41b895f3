package keys

import (
	"bytes"
	"context"

	"go.mau.fi/whatsmeow/store"
)

// identities holds the identity keys of contacts' devices.
type identities struct{ ring *Ring }

var _ store.IdentityStore = identities{}

func identityRef(address string) ref { return ref{kindIdentity, nameOf(address)} }

// PutIdentity stores an identity. whatsmeow calls it with every message, so a
// known one costs nothing. A new one is on disk with the session it belongs to;
// if it is lost before, the next identity is trusted as this one was.
func (s identities) PutIdentity(ctx context.Context, address string, key [32]byte) error {
	k := identityRef(address)
	known, err := s.ring.get(ctx, k)
	if err != nil || bytes.Equal(known.value, key[:]) {
		return err
	}
	return s.ring.putLater(ctx, k, record{value: key[:]})
}

// IsTrustedIdentity compares key with the stored identity. Without one, any key
// is trusted.
func (s identities) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	known, err := s.ring.get(ctx, identityRef(address))
	if err != nil {
		return false, err
	}
	return known.value == nil || bytes.Equal(known.value, key[:]), nil
}

// DeleteIdentity removes the identity of an address.
func (s identities) DeleteIdentity(ctx context.Context, address string) error {
	return s.ring.remove(ctx, identityRef(address))
}

// DeleteAllIdentities removes the identities of all devices of a user.
func (s identities) DeleteAllIdentities(ctx context.Context, user string) error {
	return s.ring.change(ctx, func(b *batch) error { return b.removeAll(ctx, kindIdentity, devicesOf(user)) })
}

// devicesOf is the prefix of the addresses of a user's devices.
func devicesOf(user string) string { return nameOf(user) + ":" }
