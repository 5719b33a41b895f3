package accounts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// PasswordLink lets a user choose a password once.
type PasswordLink struct {
	UserID    postern.UserID
	TokenHash string
	ExpiresAt postern.Time
	Alone     bool           // its use removes the user's second factors
	MadeBy    postern.UserID // the operator or the user who asked; "" for the server's socket
}

// Set replaces the link by which the user with an address may choose a password, on behalf
// of an operator.
func (s PasswordLinks) Set(
	ctx context.Context, email string, l PasswordLink, act store.Act,
) (u postern.User, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var ok bool
		if u, _, ok, err = userByEmail(t, email); err != nil {
			return err
		}
		if !ok {
			return postern.Errorf(postern.NotFound, "no user has this e-mail address")
		}
		act.Subject, l.UserID, l.MadeBy = string(u.ID), u.ID, act.UserID
		if err := store.RecordOperatorActs(t, []store.Act{act}); err != nil {
			return err
		}
		return savePasswordLink(t, l)
	}))
	return u, err
}

// Ask replaces the link by which the user with an address may choose a password, on the
// user's own request. made is false when nobody has the address, or when an open link that
// also removes second factors would be replaced.
func (s PasswordLinks) Ask(ctx context.Context, email string, l PasswordLink, act store.Act) (made bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		made = false // an earlier run of this function may have been rolled back
		u, _, ok, err := userByEmail(t, email)
		if err != nil || !ok {
			return err
		}
		act.Subject, act.UserID, l.UserID, l.MadeBy = string(u.ID), u.ID, u.ID, u.ID
		n, err := t.Changed(putPasswordLink+` WHERE password_link.alone = 0
			OR password_link.expires_at <= $6`, append(l.columns(), act.At)...)
		if made = n == 1; err != nil || !made {
			return err
		}
		return act.Record(t)
	}))
	return made && err == nil, err
}

const putPasswordLink = `INSERT INTO password_link (user_id, token_hash, expires_at, alone, made_by)
	VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, expires_at = excluded.expires_at,
	alone = excluded.alone, made_by = excluded.made_by`

func savePasswordLink(t *db.Tx, l PasswordLink) error { return t.Exec(putPasswordLink, l.columns()...) }

func (l PasswordLink) columns() []any {
	alone := 0
	if l.Alone {
		alone = 1
	}
	return []any{l.UserID, l.TokenHash, l.ExpiresAt, alone, l.MadeBy}
}

// Get returns the user who may choose a password with a token; ok is false when the token
// is not valid.
func (s PasswordLinks) Get(ctx context.Context, tokenHash string,
	now postern.Time,
) (u postern.User, ok bool, err error) {
	err = s.db.Row(ctx, `SELECT u.id, u.email, u.epoch, u.created_at FROM password_link p JOIN users u ON u.id = p.user_id
		WHERE p.token_hash = $1 AND p.expires_at > $2`, []any{tokenHash, now}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return u, false, nil
	}
	return u, err == nil, err
}

// Use sets the password of a user and uses the link up. It ends all login sessions,
// disconnects all identities, and returns the user's new epoch.
func (s PasswordLinks) Use(ctx context.Context, tokenHash string, id postern.UserID, passwordHash string,
	act store.Act,
) (epoch int64, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		alone := 0
		err := t.Row(`SELECT alone FROM password_link WHERE token_hash = $1 AND user_id = $2 AND expires_at > $3`,
			[]any{tokenHash, id, act.At}, &alone)
		if errors.Is(err, sql.ErrNoRows) {
			return LinkOver()
		}
		if err == nil && alone != 0 {
			removed := act
			removed.Act = "user.second-step-removed"
			err = errors.Join(removeFactors(t, id), removed.Record(t))
		}
		if err != nil {
			return err
		}
		// A previous holder of the account must not come back by an identity.
		err = errors.Join(t.Exec(`UPDATE users SET password_hash = $2 WHERE id = $1`, id, passwordHash), t.Exec(`DELETE
			FROM identity WHERE user_id = $1`, id), act.Record(t))
		if err != nil {
			return err
		}
		epoch, err = endAccess(t, id)
		return err
	}))
	return epoch, err
}
