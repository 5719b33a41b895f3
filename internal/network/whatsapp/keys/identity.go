package keys

import (
	"bytes"
	"context"
)

// PutIdentity stores an identity that is not stored yet: whatsmeow stores it
// with every message. It is on disk with the session that it belongs to; if it
// is lost before that, the next one is trusted as the first one was.
func (r *Ring) PutIdentity(ctx context.Context, address string, key [32]byte) error {
	k := ref{kindIdentity, nameOf(address)}
	known, err := r.get(ctx, k)
	if err != nil || bytes.Equal(known.value, key[:]) {
		return err
	}
	return r.noteOne(ctx, k, record{value: key[:]})
}

// IsTrustedIdentity compares with the stored identity; an unknown one is trusted.
func (r *Ring) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	known, err := r.get(ctx, ref{kindIdentity, nameOf(address)})
	if err != nil {
		return false, err
	}
	return known.value == nil || bytes.Equal(known.value, key[:]), nil
}

// DeleteIdentity lets the next identity of an address be trusted.
func (r *Ring) DeleteIdentity(ctx context.Context, address string) error {
	return r.change(ctx, func(b *batch) error {
		b.remove(ref{kindIdentity, nameOf(address)})
		return nil
	})
}

// DeleteAllIdentities does so for all devices of a user.
func (r *Ring) DeleteAllIdentities(ctx context.Context, user string) error {
	return r.change(ctx, func(b *batch) error { return b.removeAll(ctx, kindIdentity, devicesOf(user)) })
}

// devicesOf is how the addresses of a user's devices begin.
func devicesOf(user string) string { return nameOf(user) + ":" }
