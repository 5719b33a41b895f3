package keys

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// sessions holds the Signal sessions with contacts' devices.
type sessions struct {
	ring *Ring

	mu       sync.Mutex         // guards the fields below; no call of ring is made under it
	lent     map[string][]byte  // sessions as GetManySessions returned them last
	migrated map[types.JID]bool // phone numbers whose records were moved to their LID
}

var _ store.SessionStore = (*sessions)(nil)

func sessionRef(address string) ref { return ref{kindSession, nameOf(address)} }

// apart are the sessions that were read with a context of [Apart]. It is for one goroutine.
type apart map[string][]byte

type apartKey struct{}

// Apart returns a context for encrypting a message while others may be sent. With it, PutSession stores a session only
// if nobody has changed it since GetSession returned it, and returns [ErrStale] otherwise. It is for one goroutine.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, apartKey{}, apart{}) }

// GetSession returns the session with an address, or nil.
func (s *sessions) GetSession(ctx context.Context, address string) ([]byte, error) {
	rec, err := s.ring.get(ctx, sessionRef(address))
	if list, ok := ctx.Value(apartKey{}).(apart); ok && err == nil {
		list[address] = rec.value
	}
	return rec.value, err
}

// HasSession reports whether there is a session with an address.
func (s *sessions) HasSession(ctx context.Context, address string) (bool, error) {
	rec, err := s.ring.get(ctx, sessionRef(address))
	return rec.value != nil, err
}

// GetManySessions returns the sessions that a message is about to be encrypted
// with; those that do not exist are nil.
func (s *sessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	list := make(map[string][]byte, len(addresses))
	for chunk := range slices.Chunk(addresses, sessionChunk) {
		if err := s.getSome(ctx, chunk, list); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent = maps.Clone(list) // whatsmeow encrypts one message at a time
	return list, nil
}

// getSome adds some of the sessions to a list.
func (s *sessions) getSome(ctx context.Context, addresses []string, list map[string][]byte) error {
	names := sessionNames(addresses)
	return run(ctx, s.ring, func() error {
		found, err := s.ring.readMany(ctx, kindSession, names)
		if err != nil {
			return err
		}
		for i, address := range addresses {
			list[address] = found[names[i]].value
		}
		return s.ring.readAhead(ctx, kindIdentity, names)
	})
}

func sessionNames(addresses []string) []string {
	names := make([]string, len(addresses))
	for i, address := range addresses {
		names[i] = sessionRef(address).name
	}
	return names
}

// PutSession stores a session; see [Apart].
func (s *sessions) PutSession(ctx context.Context, address string, session []byte) error {
	list, ok := ctx.Value(apartKey{}).(apart)
	if !ok {
		return s.ring.put(ctx, sessionRef(address), session)
	}
	return s.ring.change(ctx, func(b *batch) error {
		current, err := b.get(ctx, sessionRef(address))
		if err == nil && !bytes.Equal(current.value, list[address]) {
			err = ErrStale
		}
		b.put(sessionRef(address), record{value: session})
		return err
	})
}

// PutManySessions stores the sessions that a message was encrypted with; its
// frame is sent when they are on disk. If one of them changed after
// GetManySessions, because a message of the same contact was decrypted in
// between, it returns [ErrStale]: storing it would lose one of the two changes.
//
// Those of a big group are stored in several transactions, so that other accounts need not wait for all of them. If only
// some are stored, nothing is lost: the message was not sent, and the next one takes later keys of these sessions.
func (s *sessions) PutManySessions(ctx context.Context, list map[string][]byte) error {
	addresses := slices.Collect(maps.Keys(list))
	for chunk := range slices.Chunk(addresses, sessionChunk) {
		err := s.ring.change(ctx, func(b *batch) error { return s.putSome(ctx, b, chunk, list) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sessions) putSome(ctx context.Context, b *batch, addresses []string, list map[string][]byte) error {
	if err := b.readAhead(ctx, kindSession, sessionNames(addresses)); err != nil {
		return err
	}
	for _, address := range addresses {
		if err := s.checkLent(ctx, b, address); err != nil {
			return err
		}
		b.put(sessionRef(address), record{value: list[address]})
	}
	return nil
}

// checkLent compares a session with the one that GetManySessions returned.
func (s *sessions) checkLent(ctx context.Context, b *batch, address string) error {
	s.mu.Lock()
	base, lent := s.lent[address]
	delete(s.lent, address)
	s.mu.Unlock()
	if !lent {
		return nil
	}
	current, err := b.get(ctx, sessionRef(address))
	if err == nil && !bytes.Equal(current.value, base) {
		err = ErrStale
	}
	return err
}

// DeleteSession removes the session with an address.
func (s *sessions) DeleteSession(ctx context.Context, address string) error {
	return s.ring.remove(ctx, sessionRef(address))
}

// DeleteAllSessions removes the sessions with all devices of a user.
func (s *sessions) DeleteAllSessions(ctx context.Context, user string) error {
	return s.ring.change(ctx, func(b *batch) error { return b.removeAll(ctx, kindSession, devicesOf(user)) })
}

// MigratePNToLID moves the sessions, identities and sender keys of a phone
// number to its LID. whatsmeow calls it with every message; it runs once per
// number and connection.
func (s *sessions) MigratePNToLID(ctx context.Context, pn, lid types.JID) error {
	if !s.startMigration(pn.ToNonAD()) {
		return nil
	}
	from, to := devicesOf(pn.SignalAddressUser()), devicesOf(lid.SignalAddressUser())
	return s.ring.change(ctx, func(b *batch) error {
		for _, kind := range []string{kindSession, kindIdentity, kindSenderKey} {
			if err := b.renameAll(ctx, kind, from, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// startMigration reports whether a number was not migrated on this connection
// yet, and marks it as migrated.
func (s *sessions) startMigration(pn types.JID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.migrated[pn] {
		return false
	}
	if s.migrated == nil || len(s.migrated) >= maxMigrated {
		s.migrated = make(map[types.JID]bool)
	}
	s.migrated[pn] = true
	return true
}
