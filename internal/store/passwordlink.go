package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// NewUser makes a user who chooses a password by a link.
type NewUser struct {
	User        postern.User
	WorkspaceID postern.WorkspaceID
	Role        postern.Role
	TokenHash   string
	ExpiresAt   postern.Time // of the link
	Existing    bool         // an account with a password may be taken as the person's own
	Act         Act
}

// Create adds a user to a workspace. One with the same address who is there
// becomes a member; linked tells whether there is a password yet to be chosen.
func (s Users) Create(ctx context.Context, o NewUser) (u postern.User, linked bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if _, err := readWorkspace(t, o.WorkspaceID); err != nil {
			return err
		}
		there, hash, known, err := userByEmail(t, o.User.Email)
		if err != nil {
			return err
		}
		u = o.User
		if known {
			u = there
		}
		identities, err := countIdentities(t, u.ID)
		if err != nil {
			return err
		}
		linked = hash == "" && identities == 0 // else somebody uses the account
		role, err := readRole(t, o.WorkspaceID, u.ID)
		switch {
		case err != nil:
			return err
		case role != "":
			return postern.Invalid("/email", "belongs to a member of this workspace already")
		case !linked && !o.Existing:
			return postern.Invalid("/email", "there is an account with this address already, and nobody has proved that it is this person's; ask the person, and add --existing, or reset its password first")
		case !known:
			err = errors.Join(insertUser(t, u, ""), t.Exec(`DELETE FROM setting WHERE name = $1`, setUpToken)) // there is a first user
		}
		if linked {
			err = errors.Join(err, savePasswordLink(t, PasswordLink{UserID: u.ID, TokenHash: o.TokenHash, ExpiresAt: o.ExpiresAt}))
		}
		o.Act.Subject = string(u.ID)
		return errors.Join(err, insertMember(t, o.WorkspaceID, u, o.Role, o.Act.At), o.Act.record(t))
	}))
	return u, linked, err
}

// PasswordLink lets a user choose a password, once.
type PasswordLink struct {
	UserID    postern.UserID
	TokenHash string
	ExpiresAt postern.Time
	Alone     bool           // the password is all that is asked for then: other factors go with its use
	MadeBy    postern.UserID // the operator, or the user who asked; "" is whoever reaches the socket
}

// Set replaces the link by which the user with an address may choose a
// password.
func (s PasswordLinks) Set(ctx context.Context, email string, l PasswordLink, act Act) (u postern.User, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var ok bool
		if u, _, ok, err = userByEmail(t, email); err != nil {
			return err
		}
		if !ok {
			return postern.Errorf(postern.NotFound, "nobody has this e-mail address")
		}
		act.Subject, l.UserID, l.MadeBy = string(u.ID), u.ID, act.UserID
		if err := recordOperatorActs(t, []Act{act}); err != nil {
			return err
		}
		return savePasswordLink(t, l)
	}))
	return u, err
}

// Ask replaces the link by which the user with an address may choose a
// password, for the user. It is not made when nobody has the address, or in place of
// an open one that does more.
func (s PasswordLinks) Ask(ctx context.Context, email string, l PasswordLink, act Act) (made bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		made = false // an earlier try may have been undone
		u, _, ok, err := userByEmail(t, email)
		if err != nil || !ok {
			return err
		}
		act.Subject, act.UserID, l.UserID, l.MadeBy = string(u.ID), u.ID, u.ID, u.ID
		n, err := t.Changed(putPasswordLink+` WHERE password_link.alone = 0 OR password_link.expires_at <= $6`, append(l.columns(), act.At)...)
		if made = n == 1; err != nil || !made {
			return err
		}
		return act.record(t)
	}))
	return made && err == nil, err
}

const putPasswordLink = `INSERT INTO password_link (user_id, token_hash, expires_at, alone, made_by) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, expires_at = excluded.expires_at, alone = excluded.alone, made_by = excluded.made_by`

func savePasswordLink(t *db.Tx, l PasswordLink) error { return t.Exec(putPasswordLink, l.columns()...) }

func (l PasswordLink) columns() []any {
	alone := 0
	if l.Alone {
		alone = 1
	}
	return []any{l.UserID, l.TokenHash, l.ExpiresAt, alone, l.MadeBy}
}

// Get finds who may choose a password by a token; ok is false when nobody
// may.
func (s PasswordLinks) Get(ctx context.Context, tokenHash string, now postern.Time) (u postern.User, ok bool, err error) {
	err = s.db.Row(ctx, `SELECT u.id, u.email, u.epoch, u.created_at FROM password_link p JOIN users u ON u.id = p.user_id WHERE p.token_hash = $1 AND p.expires_at > $2`, []any{tokenHash, now}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return u, false, nil
	}
	return u, err == nil, err
}

// Use sets the password of a user by a link, which is used up, ends
// all sign-ins, and disconnects all identities. It gives the user's new epoch.
func (s PasswordLinks) Use(ctx context.Context, tokenHash string, id postern.UserID, passwordHash string, act Act) (epoch int64, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		alone := 0
		err := t.Row(`SELECT alone FROM password_link WHERE token_hash = $1 AND user_id = $2 AND expires_at > $3`, []any{tokenHash, id, act.At}, &alone)
		if errors.Is(err, sql.ErrNoRows) {
			return LinkOver()
		}
		if err == nil && alone != 0 {
			removed := act
			removed.Act = "user.second-step-removed"
			err = errors.Join(removeFactors(t, id), removed.record(t))
		}
		if err != nil {
			return err
		}
		// Whoever had the account before must not come back by an identity.
		err = errors.Join(t.Exec(`UPDATE users SET password_hash = $2 WHERE id = $1`, id, passwordHash), t.Exec(`DELETE FROM identity WHERE user_id = $1`, id), act.record(t))
		if err != nil {
			return err
		}
		epoch, err = endAccess(t, id)
		return err
	}))
	return epoch, err
}
