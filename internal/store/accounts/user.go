package accounts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// ByEmail returns the user with an e-mail address and the hash of the password; ok is false
// when there is none.
func (s Users) ByEmail(ctx context.Context, email string) (u postern.User, passwordHash string, ok bool, err error) {
	return found(s.find(ctx, `email = $1`, email))
}

// Get returns a user and the hash of the password; ok is false if the user does not exist.
func (s Users) Get(ctx context.Context, id postern.UserID) (u postern.User, passwordHash string, ok bool, err error) {
	return found(s.find(ctx, `id = $1`, id))
}

const userWhere = `SELECT id, email, epoch, created_at, operator, password_hash FROM users WHERE `

func (s Users) find(ctx context.Context, where string, arg any) (u postern.User, passwordHash string, err error) {
	err = s.db.Row(ctx, userWhere+where, []any{arg}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt, &u.Operator,
		&passwordHash)
	return u, passwordHash, err
}

func found(u postern.User, passwordHash string, err error) (postern.User, string, bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return u, "", false, nil
	}
	return u, passwordHash, err == nil, err
}

// userByEmail returns a user and the hash of the password; ok is false when there is no
// such user.
func userByEmail(t *db.Tx, email string) (u postern.User, passwordHash string, ok bool, err error) {
	err = t.Row(userWhere+`email = $1`, []any{email}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt, &u.Operator,
		&passwordHash)
	return found(u, passwordHash, err)
}

// NewUser creates a user who chooses a password by a link.
type NewUser struct {
	User        postern.User
	WorkspaceID postern.WorkspaceID
	Role        postern.Role
	TokenHash   string
	ExpiresAt   postern.Time // of the link
	Existing    bool         // an existing account with a password may be added
	Act         store.Act
}

// Create adds a user to a workspace and returns the user. An existing user with the same
// address becomes a member; linked reports whether the user still has to choose a password
// by the link.
func (s Users) Create(ctx context.Context, o NewUser) (u postern.User, linked bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if _, err := store.ReadWorkspace(t, o.WorkspaceID); err != nil {
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
		linked = hash == "" && identities == 0 // otherwise the account is in use
		role, err := store.ReadRole(t, o.WorkspaceID, u.ID)
		switch {
		case err != nil:
			return err
		case role != "":
			return postern.Invalid("/email", "belongs to a member of this workspace already")
		case !linked && !o.Existing:
			return postern.Invalid("/email",
				"there is an account with this address already, and nobody has proved that it is "+
					"this person's; ask the person, and add --existing, or reset its password first")
		}
		if err := checkMembership(t, o.WorkspaceID, u.ID); err != nil {
			return err
		}
		if !known {
			err = errors.Join(insertUser(t, u, ""), t.Exec(`DELETE FROM setting
				WHERE name = $1`, setUpToken)) // the first user ends the set-up
		}
		if linked {
			err = errors.Join(err, savePasswordLink(t,
				PasswordLink{UserID: u.ID, TokenHash: o.TokenHash, ExpiresAt: o.ExpiresAt}))
		}
		o.Act.Subject = string(u.ID)
		return errors.Join(err, insertMember(t, o.WorkspaceID, u, o.Role, o.Act.At), o.Act.Record(t))
	}))
	return u, linked, err
}

func insertUser(t *db.Tx, u postern.User, passwordHash string) error {
	return t.Exec(`INSERT INTO users (id, email, password_hash, created_at) VALUES ($1, $2, $3, $4)`, u.ID, u.Email,
		passwordHash, u.CreatedAt)
}

// SetPassword replaces the password of a user, if its hash still is before, and ends all
// login sessions. It returns the user's new epoch.
func (s Users) SetPassword(ctx context.Context, id postern.UserID, before, passwordHash string,
	act store.Act,
) (epoch int64, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE users SET password_hash = $2
			WHERE id = $1 AND password_hash = $3`, id, passwordHash, before)
		if err != nil {
			return err
		}
		if n == 0 {
			return postern.Invalid("/current", "the password was just changed")
		}
		epoch, err = endAccess(t, id)
		return errors.Join(err, act.Record(t))
	}))
	return epoch, err
}

// RenewHash replaces the hash of a user's password by another one of the same password. A
// password that was changed meanwhile stays.
func (s Users) RenewHash(ctx context.Context, id postern.UserID, before, passwordHash string) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE users SET password_hash = $2 WHERE id = $1 AND password_hash = $3`,
			id, passwordHash, before)
	}))
}

// endAccess ends all login sessions of a user, the sign-ins in progress, and the user's
// password link. It returns the user's new epoch.
func endAccess(t *db.Tx, id postern.UserID) (epoch int64, err error) {
	err = errors.Join(t.Exec(`DELETE FROM password_link WHERE user_id = $1`, id), endSignIns(t, id, ""))
	if err == nil {
		err = t.Row(`SELECT epoch FROM users WHERE id = $1`, []any{id}, &epoch)
	}
	return epoch, err
}
