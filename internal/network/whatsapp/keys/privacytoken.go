package keys

import (
	"context"
	"time"

	"postern/internal/postern"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// privacyTokens holds the tokens with which people let the account write to
// them.
type privacyTokens struct {
	ring *Ring
	lids lids
}

var _ store.PrivacyTokenStore = privacyTokens{}

// token is a privacy token as it is stored; times are Unix seconds.
type token struct {
	Token  []byte `json:"token"`
	At     int64  `json:"at"`
	SentAt int64  `json:"sent_at,omitempty"` // when the account sent its own token; 0 for never
}

func tokenRef(user types.JID) ref { return ref{kindToken, nameOf(user.ToNonAD().String())} }

// PutPrivacyTokens stores tokens, except those older than the stored ones.
func (s privacyTokens) PutPrivacyTokens(ctx context.Context, tokens ...store.PrivacyToken) error {
	return s.ring.change(ctx, func(b *batch) error {
		for _, t := range tokens {
			if err := b.putToken(ctx, t); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *batch) putToken(ctx context.Context, t store.PrivacyToken) error {
	var known token
	found, err := b.load(ctx, tokenRef(t.User), &known)
	if err != nil || found && known.At > t.Timestamp.Unix() {
		return err
	}
	fresh := token{Token: t.Token, At: t.Timestamp.Unix(), SentAt: known.SentAt}
	if !t.SenderTimestamp.IsZero() {
		fresh.SentAt = t.SenderTimestamp.Unix()
	}
	return b.save(
		tokenRef(t.User),
		max(1, postern.TimeOf(t.Timestamp)),
		fresh,
	) // a record with time 0 would never expire
}

// GetPrivacyToken returns the newest token of a person, given by number or LID,
// or nil.
func (s privacyTokens) GetPrivacyToken(ctx context.Context, user types.JID) (*store.PrivacyToken, error) {
	user = user.ToNonAD()
	names, err := s.lids.bothNames(ctx, user)
	if err != nil {
		return nil, err
	}
	var newest *token
	for _, name := range names {
		var t token
		found, err := s.ring.load(ctx, tokenRef(name), &t)
		if err != nil {
			return nil, err
		}
		if found && (newest == nil || t.At > newest.At) {
			newest = &t
		}
	}
	return newest.decoded(user), nil
}

func (t *token) decoded(user types.JID) *store.PrivacyToken {
	if t == nil {
		return nil
	}
	out := &store.PrivacyToken{User: user, Token: t.Token, Timestamp: time.Unix(t.At, 0)}
	if t.SentAt != 0 {
		out.SenderTimestamp = time.Unix(t.SentAt, 0)
	}
	return out
}

// DeleteExpiredPrivacyTokens removes the tokens older than cutoff and returns
// how many there were.
func (s privacyTokens) DeleteExpiredPrivacyTokens(ctx context.Context, cutoff time.Time) (int64, error) {
	n, err := s.ring.removeBefore(ctx, kindToken, cutoff)
	return int64(n), err
}

// nctSalt holds the account's salt for tokens to people who gave it none.
type nctSalt struct{ ring *Ring }

var (
	_ store.NCTSaltStore = nctSalt{}

	saltRef = ref{kindSalt, unnamed} //nolint:gochecknoglobals // a constant
)

// PutNCTSalt stores the salt.
func (s nctSalt) PutNCTSalt(ctx context.Context, salt []byte) error {
	return s.ring.put(ctx, saltRef, salt)
}

// GetNCTSalt returns the salt, or nil.
func (s nctSalt) GetNCTSalt(ctx context.Context) ([]byte, error) {
	rec, err := s.ring.get(ctx, saltRef)
	return rec.value, err
}

// DeleteNCTSalt removes the salt.
func (s nctSalt) DeleteNCTSalt(ctx context.Context) error { return s.ring.remove(ctx, saltRef) }
