package keys

import (
	"bytes"
	"context"
	"maps"
	"strings"

	"go.mau.fi/whatsmeow/types"
)

// GetSession gives the session with an address, or nil.
func (r *Ring) GetSession(ctx context.Context, address string) ([]byte, error) {
	rec, err := r.get(ctx, ref{kindSession, nameOf(address)})
	return rec.value, err
}

// HasSession tells whether there is a session with an address.
func (r *Ring) HasSession(ctx context.Context, address string) (bool, error) {
	rec, err := r.get(ctx, ref{kindSession, nameOf(address)})
	return rec.value != nil, err
}

// GetManySessions gives the sessions with which a message is about to be
// encrypted, nil for those that are not there.
func (r *Ring) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	sessions := make(map[string][]byte, len(addresses))
	for _, address := range addresses {
		session, err := r.GetSession(ctx, address)
		if err != nil {
			return nil, err
		}
		sessions[address] = session
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered = maps.Clone(sessions) // whatsmeow prepares one message at a time
	return sessions, nil
}

// PutSession stores a session.
func (r *Ring) PutSession(ctx context.Context, address string, session []byte) error {
	return r.change(ctx, func(b *batch) error {
		b.put(ref{kindSession, nameOf(address)}, record{value: session})
		return nil
	})
}

// PutManySessions stores the sessions with which a message was encrypted; its
// frame leaves when they are on disk. A session that was given out by
// GetManySessions and has moved on since, because a message of the same person
// was decrypted meanwhile, gives [ErrStale]: either of the two would be lost.
func (r *Ring) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	return r.change(ctx, func(b *batch) error {
		for address, session := range sessions {
			k := ref{kindSession, nameOf(address)}
			if err := b.expect(ctx, k, address); err != nil {
				return err
			}
			b.put(k, record{value: session})
		}
		return nil
	})
}

// expect compares a session with what GetManySessions gave out.
func (b *batch) expect(ctx context.Context, k ref, address string) error {
	b.ring.mu.Lock()
	base, offered := b.ring.offered[address]
	delete(b.ring.offered, address)
	b.ring.mu.Unlock()
	if !offered {
		return nil
	}
	current, err := b.get(ctx, k)
	if err == nil && !bytes.Equal(current.value, base) {
		err = ErrStale
	}
	return err
}

// DeleteSession removes the session with an address.
func (r *Ring) DeleteSession(ctx context.Context, address string) error {
	return r.change(ctx, func(b *batch) error {
		b.remove(ref{kindSession, nameOf(address)})
		return nil
	})
}

// DeleteAllSessions removes the sessions with all devices of a user.
func (r *Ring) DeleteAllSessions(ctx context.Context, user string) error {
	return r.change(ctx, func(b *batch) error { return b.removeAll(ctx, kindSession, devicesOf(user)) })
}

// MigratePNToLID moves what is kept under a number to its LID, once: whatsmeow
// asks with every message.
func (r *Ring) MigratePNToLID(ctx context.Context, pn, lid types.JID) error {
	if !r.migrates(pn.ToNonAD()) {
		return nil
	}
	from, to := devicesOf(pn.SignalAddressUser()), devicesOf(lid.SignalAddressUser())
	return r.change(ctx, func(b *batch) error {
		for _, kind := range []string{kindSession, kindIdentity, kindSenderKey} {
			if err := b.move(ctx, kind, from, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// migrates tells whether a number was not moved on this connection yet.
func (r *Ring) migrates(pn types.JID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.migrated[pn] {
		return false
	}
	if r.migrated == nil || len(r.migrated) >= maxCached {
		r.migrated = make(map[types.JID]bool)
	}
	r.migrated[pn] = true
	return true
}

// move gives records whose names begin with from names that begin with to.
func (b *batch) move(ctx context.Context, kind, from, to string) error {
	list, err := b.list(ctx, kind, from)
	for _, l := range list {
		b.remove(ref{kind, l.name})
		b.put(ref{kind, to + strings.TrimPrefix(l.name, from)}, l.record)
	}
	return err
}
