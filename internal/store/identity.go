package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// Identity is who a user is at a provider of OpenID Connect.
type Identity struct {
	Issuer, Subject string
	UserID          postern.UserID
	CreatedAt       postern.Time
}

// User finds the user who is somebody at a provider; ok is false when
// nobody is.
func (s Identities) User(ctx context.Context, issuer, subject string) (u postern.User, ok bool, err error) {
	err = s.db.Row(ctx, `SELECT u.id, u.email, u.epoch, u.created_at FROM identity i JOIN users u ON u.id = i.user_id WHERE i.issuer = $1 AND i.subject = $2`, []any{issuer, subject}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return u, false, nil
	}
	return u, err == nil, err
}

const identitiesOf = `SELECT issuer, subject, user_id, created_at FROM identity WHERE user_id = $1 ORDER BY created_at LIMIT $2 + 0`

// List lists the identities of a user, at most limit, the oldest first.
func (s Identities) List(ctx context.Context, id postern.UserID, limit int) (list []Identity, err error) {
	err = s.db.Rows(ctx, identitiesOf, []any{id, limit}, func(r *sql.Rows) error {
		var i Identity
		err := r.Scan(&i.Issuer, &i.Subject, &i.UserID, &i.CreatedAt)
		list = append(list, i)
		return err
	})
	return list, err
}

func countIdentities(t *db.Tx, id postern.UserID) (n int, err error) {
	err = t.Row(`SELECT count(*) FROM identity WHERE user_id = $1`, []any{id}, &n)
	return n, err
}

// Add connects an identity with a user, who has at most limit, and whose
// session with the token's hash goes on. One that is connected already stays whose
// it is.
func (s Identities) Add(ctx context.Context, i Identity, limit int, session string, act Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		// It locks the row. While the provider was asked the session may have ended.
		if n, err := t.Changed(`UPDATE sign_in SET user_id = user_id WHERE token_hash = $1 AND user_id = $2`, session, i.UserID); err != nil || n == 0 {
			return cmp.Or(err, errOvertaken)
		}
		n, err := countIdentities(t, i.UserID)
		switch {
		case err != nil:
			return err
		case n >= limit:
			return postern.Errorf(postern.ResourceNotAllowed, "%d are connected already; disconnect one first", n)
		}
		return errors.Join(insertIdentity(t, i), act.record(t))
	}))
}

// addIdentity adds an identity that is nobody's yet.
func insertIdentity(t *db.Tx, i Identity) error {
	n, err := t.Changed(`INSERT INTO identity (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (issuer, subject) DO NOTHING`, i.Issuer, i.Subject, i.UserID, i.CreatedAt)
	if err == nil && n == 0 {
		err = postern.Errorf(postern.ResourceNotAllowed, "this identity is connected with an account already")
	}
	return err
}

// Remove disconnects an identity from a user who has a password, and ends
// what it may have opened: all sessions but the one with the token's hash.
func (s Identities) Remove(ctx context.Context, i Identity, but string, act Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var hash string
		if err := t.Row(`SELECT password_hash FROM users WHERE id = $1`, []any{i.UserID}, &hash); err != nil {
			return err
		}
		if hash == "" {
			return postern.Errorf(postern.ResourceNotAllowed, "without it nothing would sign you in: choose a password first")
		}
		n, err := t.Changed(`DELETE FROM identity WHERE issuer = $1 AND subject = $2 AND user_id = $3`, i.Issuer, i.Subject, i.UserID)
		if err != nil {
			return err
		}
		if n == 0 {
			return postern.Errorf(postern.NotFound, "it was disconnected already")
		}
		return errors.Join(endSignIns(t, i.UserID, but), act.record(t))
	}))
}
