package keys

import "context"

// PutSenderKey stores a ratchet of a group. The sender comes first in the name,
// so that MigratePNToLID finds all of a number.
func (r *Ring) PutSenderKey(ctx context.Context, group, user string, session []byte) error {
	return r.change(ctx, func(b *batch) error {
		b.put(ref{kindSenderKey, nameOf(user, group)}, record{value: session})
		return nil
	})
}

// GetSenderKey gives a ratchet of a group, or nil.
func (r *Ring) GetSenderKey(ctx context.Context, group, user string) ([]byte, error) {
	rec, err := r.get(ctx, ref{kindSenderKey, nameOf(user, group)})
	return rec.value, err
}
