package accounts

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// SignIn is a login session of a browser.
type SignIn struct {
	TokenHash string
	UserID    postern.UserID // "" before a user has signed in
	Epoch     int64          // of the user when the password was checked
	Data      []byte
	ExpiresAt postern.Time
}

var errOvertaken error = postern.Errorf(postern.Unauthorized,
	"the password was just changed, or all browsers were signed out; sign in again")

// Create adds a login session. It returns an Unauthorized error when the user's login
// sessions were ended after the password was checked. A user has at most
// [postern.MaxSignIns] sessions; a new one ends the oldest.
func (s SignIns) Create(ctx context.Context, in SignIn) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if in.UserID != "" {
			// This locks the row, so that it would hold for several nodes as well.
			if n, err := t.Changed(`UPDATE users SET epoch = epoch
				WHERE id = $1 AND epoch = $2`, in.UserID, in.Epoch); err != nil || n == 0 {
				return cmp.Or(err, errOvertaken)
			}
		}
		return errors.Join(
			t.Exec(`INSERT INTO sign_in (token_hash, user_id, data, expires_at) VALUES ($1, $2, $3, $4)`,
				in.TokenHash, in.UserID, in.Data, in.ExpiresAt),
			endOldest(t, in.UserID))
	}))
}

// endOldest ends the login sessions of a user beyond those that last longest.
func endOldest(t *db.Tx, id postern.UserID) error {
	if id == "" {
		return nil
	}
	return t.Exec(`DELETE FROM sign_in WHERE token_hash IN (SELECT token_hash FROM sign_in WHERE user_id = $1
		ORDER BY expires_at DESC LIMIT $2 + 0 OFFSET $3 + 0)`, id, chunk, postern.MaxSignIns)
}

// Update writes a login session. It does nothing when the session has ended.
func (s SignIns) Update(ctx context.Context, in SignIn) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE sign_in SET user_id = $2, data = $3, expires_at = $4 WHERE token_hash = $1`, in.TokenHash,
			in.UserID, in.Data, in.ExpiresAt)
	}))
}

// Get returns the login session with the hash of a token; ok is false when it has ended.
func (s SignIns) Get(ctx context.Context, tokenHash string, now postern.Time) (in SignIn, ok bool, err error) {
	in.TokenHash = tokenHash
	err = s.db.Row(ctx, `SELECT user_id, data, expires_at FROM sign_in WHERE token_hash = $1 AND expires_at > $2`,
		[]any{tokenHash, now}, &in.UserID, &in.Data, &in.ExpiresAt)
	if errors.Is(err, sql.ErrNoRows) {
		return in, false, nil
	}
	return in, err == nil, err
}

// List returns up to limit login sessions of a user that have not ended, those that last
// longest first.
func (s SignIns) List(ctx context.Context, id postern.UserID, now postern.Time, limit int) (list []SignIn, err error) {
	err = s.db.Rows(ctx, `SELECT token_hash, user_id, data, expires_at FROM sign_in WHERE user_id = $1 AND expires_at > $2
		ORDER BY expires_at DESC LIMIT $3 + 0`, []any{id, now, limit}, func(r *sql.Rows) error {
		var s SignIn
		err := r.Scan(&s.TokenHash, &s.UserID, &s.Data, &s.ExpiresAt)
		list = append(list, s)
		return err
	})
	return list, err
}

// End ends a login session.
func (s SignIns) End(ctx context.Context, tokenHash string) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`DELETE FROM sign_in WHERE token_hash = $1`, tokenHash)
	}))
}

// EndAll ends all login sessions of a user except the one with the token's hash in but.
func (s SignIns) EndAll(ctx context.Context, id postern.UserID, but string, act store.Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(endSignIns(t, id, but), act.Record(t))
	}))
}

// endSignIns ends the login sessions of a user except one, and the sign-ins in progress:
// those whose password was checked but that have no login session yet.
func endSignIns(t *db.Tx, id postern.UserID, but string) error {
	return errors.Join(
		t.Exec(`DELETE FROM sign_in WHERE user_id = $1 AND token_hash <> $2`, id, but),
		t.Exec(`UPDATE users SET epoch = epoch + 1 WHERE id = $1`, id))
}

// Remove deletes a chunk of the login sessions that have ended; more reports that there may
// be others.
func (s SignIns) Remove(ctx context.Context, now postern.Time) (more bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM sign_in WHERE token_hash IN (SELECT token_hash FROM sign_in WHERE expires_at <= $1
			LIMIT $2 + 0)`, now, chunk)
		more = n == chunk
		return err
	}))
	return more, err
}
