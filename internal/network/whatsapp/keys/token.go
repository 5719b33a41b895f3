package keys

import (
	"context"
	"time"

	"postern/internal/postern"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// token is a privacy token as it is kept; times are Unix seconds.
type token struct {
	Token  []byte `json:"token"`
	At     int64  `json:"at"`
	SentAt int64  `json:"sent_at,omitempty"` // when the account gave its own; 0 for never
}

func tokenRef(user types.JID) ref { return ref{kindToken, nameOf(user.ToNonAD().String())} }

// PutPrivacyTokens stores tokens, unless newer ones are stored.
func (r *Ring) PutPrivacyTokens(ctx context.Context, tokens ...store.PrivacyToken) error {
	return r.change(ctx, func(b *batch) error {
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
	return b.save(tokenRef(t.User), max(1, postern.TimeOf(t.Timestamp)), fresh) // 0 would never expire
}

// GetPrivacyToken gives the newest token of a person, who may be asked for by
// number or LID, or nil.
func (r *Ring) GetPrivacyToken(ctx context.Context, user types.JID) (*store.PrivacyToken, error) {
	user = user.ToNonAD()
	names, err := r.bothNames(ctx, user)
	if err != nil {
		return nil, err
	}
	var newest *token
	for _, name := range names {
		var t token
		found, err := r.load(ctx, tokenRef(name), &t)
		if err != nil {
			return nil, err
		}
		if found && (newest == nil || t.At > newest.At) {
			newest = &t
		}
	}
	return newest.of(user), nil
}

func (t *token) of(user types.JID) *store.PrivacyToken {
	if t == nil {
		return nil
	}
	out := &store.PrivacyToken{User: user, Token: t.Token, Timestamp: time.Unix(t.At, 0)}
	if t.SentAt != 0 {
		out.SenderTimestamp = time.Unix(t.SentAt, 0)
	}
	return out
}

// DeleteExpiredPrivacyTokens removes the tokens from before cutoff and counts them.
func (r *Ring) DeleteExpiredPrivacyTokens(ctx context.Context, cutoff time.Time) (int64, error) {
	names, err := r.before(ctx, kindToken, cutoff)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	err = r.change(ctx, func(b *batch) error {
		for _, name := range names {
			b.remove(ref{kindToken, name})
		}
		return nil
	})
	return int64(len(names)), err
}

// before names the records of a kind that have a time before a given one.
func (r *Ring) before(ctx context.Context, kind string, at time.Time) ([]string, error) {
	return ask(ctx, r, func() ([]string, error) {
		if err := r.flush(ctx); err != nil {
			return nil, err
		}
		return r.keys.db.SessionKeys.Before(ctx, r.account, kind, postern.TimeOf(at))
	})
}

// PutNCTSalt stores the account's salt for tokens to people it has none from.
func (r *Ring) PutNCTSalt(ctx context.Context, salt []byte) error {
	return r.change(ctx, func(b *batch) error {
		b.put(ref{kindSalt, nameOnly}, record{value: salt})
		return nil
	})
}

// GetNCTSalt gives the account's salt, or nil.
func (r *Ring) GetNCTSalt(ctx context.Context) ([]byte, error) {
	rec, err := r.get(ctx, ref{kindSalt, nameOnly})
	return rec.value, err
}

// DeleteNCTSalt removes the account's salt.
func (r *Ring) DeleteNCTSalt(ctx context.Context) error {
	return r.change(ctx, func(b *batch) error {
		b.remove(ref{kindSalt, nameOnly})
		return nil
	})
}
