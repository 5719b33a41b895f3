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

// Identity is a user's account at an OpenID Connect provider.
type Identity struct {
	Issuer, Subject string
	UserID          postern.UserID
	CreatedAt       postern.Time
}

// User returns the user whom an identity belongs to; ok is false when it belongs to nobody.
func (s Identities) User(ctx context.Context, issuer, subject string) (u postern.User, ok bool, err error) {
	err = s.db.Row(ctx, `SELECT u.id, u.email, u.epoch, u.created_at FROM identity i JOIN users u ON u.id = i.user_id
		WHERE i.issuer = $1 AND i.subject = $2`, []any{issuer, subject}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return u, false, nil
	}
	return u, err == nil, err
}

const identitiesOf = `SELECT issuer, subject, user_id, created_at FROM identity WHERE user_id = $1
	ORDER BY created_at LIMIT $2 + 0`

// List returns up to limit identities of a user, oldest first.
func (s Identities) List(ctx context.Context, id postern.UserID, limit int) (list []Identity, err error) {
	err = s.db.Rows(ctx, identitiesOf, []any{id, limit}, func(r *sql.Rows) error {
		var i Identity
		err := r.Scan(&i.Issuer, &i.Subject, &i.UserID, &i.CreatedAt)
		list = append(list, i)
		return err
	})
	return list, err
}

// countIdentities counts the identities of a user.
//
// Single writer: count.
func countIdentities(t *db.Tx, id postern.UserID) (n int, err error) {
	err = t.Row(`SELECT count(*) FROM identity WHERE user_id = $1`, []any{id}, &n)
	return n, err
}

// Add connects an identity to a user, who may have at most limit. session is the hash of
// the token of the login session in which the user asked for it; that session must not have
// ended. An identity that is already connected stays with its user, and Add returns an
// error.
func (s Identities) Add(ctx context.Context, i Identity, limit int, session string, act store.Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		// This locks the row. The session may have ended while the provider was asked.
		if n, err := t.Changed(`UPDATE sign_in SET user_id = user_id WHERE token_hash = $1
			AND user_id = $2`, session, i.UserID); err != nil || n == 0 {
			return cmp.Or(err, errOvertaken)
		}
		n, err := countIdentities(t, i.UserID)
		switch {
		case err != nil:
			return err
		case n >= limit:
			return postern.Errorf(postern.ResourceNotAllowed,
				"%d identities are already connected; disconnect one first",
				n)
		}
		return errors.Join(insertIdentity(t, i), act.Record(t))
	}))
}

// insertIdentity adds an identity that belongs to nobody yet.
func insertIdentity(t *db.Tx, i Identity) error {
	n, err := t.Changed(`INSERT INTO identity (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (issuer, subject) DO NOTHING`, i.Issuer, i.Subject, i.UserID, i.CreatedAt)
	if err == nil && n == 0 {
		err = postern.Errorf(postern.ResourceNotAllowed, "this identity is connected with an account already")
	}
	return err
}

// Remove disconnects an identity from a user who has a password, and ends the login
// sessions that it may have opened: all except the one with the token's hash in but.
func (s Identities) Remove(ctx context.Context, i Identity, but string, act store.Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var hash string
		if err := t.Row(`SELECT password_hash FROM users WHERE id = $1`, []any{i.UserID}, &hash); err != nil {
			return err
		}
		if hash == "" {
			return postern.Errorf(postern.ResourceNotAllowed,
				"you could no longer sign in without this identity; choose a password first")
		}
		n, err := t.Changed(`DELETE FROM identity WHERE issuer = $1 AND subject = $2
			AND user_id = $3`, i.Issuer, i.Subject, i.UserID)
		if err != nil {
			return err
		}
		if n == 0 {
			return postern.Errorf(postern.NotFound, "this identity was already disconnected")
		}
		return errors.Join(endSignIns(t, i.UserID, but), act.Record(t))
	}))
}
