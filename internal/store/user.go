package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

const setUpToken = "set_up_token" // the setting: the hash of the token, in hexadecimal

// SetUp makes the first user and a workspace, and uses the set-up token up. The
// user owns that workspace and all that there are already, and is an operator.
type SetUp struct {
	TokenHash    string
	User         postern.User
	PasswordHash string
	Workspace    postern.Workspace
	Act          Act
}

func (o SetUp) apply(t *db.Tx) error {
	n, err := t.Changed(`DELETE FROM setting WHERE name = $1 AND value = $2 AND NOT EXISTS (SELECT 1 FROM users)`, setUpToken, o.TokenHash)
	if err != nil {
		return err
	}
	if n == 0 {
		return postern.Errorf(postern.NotFound, "this set-up link was used already, or is an older one; the server prints the newest at its start")
	}
	return errors.Join(
		t.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ($1, $2, $3, $4)`, o.Workspace.ID, o.Workspace.Name, o.Workspace.Plan, o.Workspace.CreatedAt),
		insertUser(t, o.User, o.PasswordHash),
		t.Exec(`UPDATE users SET operator = 1 WHERE id = $1`, o.User.ID),
		t.Exec(`INSERT INTO member (user_id, workspace_id, role, joined_at) SELECT CAST($1 AS TEXT), id, CAST($2 AS TEXT), CAST($3 AS BIGINT) FROM workspace`, o.User.ID, postern.Owner, o.User.CreatedAt),
		o.Act.record(t),
	)
}

// SetUp makes the first user.
func (s Users) SetUp(ctx context.Context, o SetUp) error { return s.db.Do(ctx, db.Func(o.apply)) }

// SetSetUpToken replaces the token of the set-up link; ok is false when there is
// a user already.
func (s Users) SetSetUpToken(ctx context.Context, hash string) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var users int
		if err := t.Row(`SELECT count(*) FROM users`, nil, &users); err != nil || users > 0 {
			return err
		}
		ok = true
		return t.Exec(`INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, setUpToken, hash)
	}))
	return ok, err
}

// SetUpToken is the hash of the token of the set-up link; "" when none is open.
func (s Users) SetUpToken(ctx context.Context) (hash string, err error) {
	return Settings{s.core}.Get(ctx, setUpToken)
}

// ByEmail finds a user and the hash of the password; ok is false when there
// is none.
func (s Users) ByEmail(ctx context.Context, email string) (u postern.User, passwordHash string, ok bool, err error) {
	return found(s.find(ctx, `email = $1`, email))
}

// Get finds a user and the hash of the password; ok is false when there is none.
func (s Users) Get(ctx context.Context, id postern.UserID) (u postern.User, passwordHash string, ok bool, err error) {
	return found(s.find(ctx, `id = $1`, id))
}

const userWhere = `SELECT id, email, epoch, created_at, operator, password_hash FROM users WHERE `

func (s Users) find(ctx context.Context, where string, arg any) (u postern.User, passwordHash string, err error) {
	err = s.db.Row(ctx, userWhere+where, []any{arg}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt, &u.Operator, &passwordHash)
	return u, passwordHash, err
}

func found(u postern.User, passwordHash string, err error) (postern.User, string, bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return u, "", false, nil
	}
	return u, passwordHash, err == nil, err
}

// SetPassword replaces the password of a user, if its hash is still the one of
// before, and ends all sign-ins. It gives the user's new epoch.
func (s Users) SetPassword(ctx context.Context, id postern.UserID, before, passwordHash string, act Act) (epoch int64, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE users SET password_hash = $2 WHERE id = $1 AND password_hash = $3`, id, passwordHash, before)
		if err != nil {
			return err
		}
		if n == 0 {
			return postern.Invalid("/current", "the password was changed in this moment")
		}
		epoch, err = endAccess(t, id)
		return errors.Join(err, act.record(t))
	}))
	return epoch, err
}

// endAccess ends what was opened with a user's password of before, and what is
// being opened with it.
func endAccess(t *db.Tx, id postern.UserID) (epoch int64, err error) {
	err = errors.Join(t.Exec(`DELETE FROM password_link WHERE user_id = $1`, id), endSignIns(t, id, ""))
	if err == nil {
		err = t.Row(`SELECT epoch FROM users WHERE id = $1`, []any{id}, &epoch)
	}
	return epoch, err
}

// endSignIns ends the sessions of a user but for one, and those to which a
// password that was checked before would lead.
func endSignIns(t *db.Tx, id postern.UserID, but string) error {
	return errors.Join(
		t.Exec(`DELETE FROM sign_in WHERE user_id = $1 AND token_hash <> $2`, id, but),
		t.Exec(`UPDATE users SET epoch = epoch + 1 WHERE id = $1`, id))
}

// SignIn is a browser that has a session of the dashboard.
type SignIn struct {
	TokenHash string
	UserID    postern.UserID // "" before somebody has signed in
	Epoch     int64          // of the user, when the password was checked
	Data      []byte
	ExpiresAt postern.Time
}

var errOvertaken error = postern.Errorf(postern.Unauthorized, "the password was changed in this moment, or all browsers were signed out; sign in again")

// Create adds the session of a browser. It is refused when all sign-ins of
// the user were ended since the password was checked.
func (s SignIns) Create(ctx context.Context, in SignIn) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if in.UserID != "" {
			// It locks the row: another node may be changing the password.
			if n, err := t.Changed(`UPDATE users SET epoch = epoch WHERE id = $1 AND epoch = $2`, in.UserID, in.Epoch); err != nil || n == 0 {
				return cmp.Or(err, errOvertaken)
			}
		}
		return t.Exec(`INSERT INTO sign_in (token_hash, user_id, data, expires_at) VALUES ($1, $2, $3, $4)`, in.TokenHash, in.UserID, in.Data, in.ExpiresAt)
	}))
}

// Update writes the session of a browser. One that was ended meanwhile stays
// so.
func (s SignIns) Update(ctx context.Context, in SignIn) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE sign_in SET user_id = $2, data = $3, expires_at = $4 WHERE token_hash = $1`, in.TokenHash, in.UserID, in.Data, in.ExpiresAt)
	}))
}

// Get finds the session of a browser; ok is false when it has ended.
func (s SignIns) Get(ctx context.Context, tokenHash string, now postern.Time) (in SignIn, ok bool, err error) {
	in.TokenHash = tokenHash
	err = s.db.Row(ctx, `SELECT user_id, data, expires_at FROM sign_in WHERE token_hash = $1 AND expires_at > $2`, []any{tokenHash, now}, &in.UserID, &in.Data, &in.ExpiresAt)
	if errors.Is(err, sql.ErrNoRows) {
		return in, false, nil
	}
	return in, err == nil, err
}

// List lists the sessions of a user that have not ended, at most limit, those
// that last longest first.
func (s SignIns) List(ctx context.Context, id postern.UserID, now postern.Time, limit int) (list []SignIn, err error) {
	err = s.db.Rows(ctx, `SELECT token_hash, user_id, data, expires_at FROM sign_in WHERE user_id = $1 AND expires_at > $2 ORDER BY expires_at DESC LIMIT $3 + 0`, []any{id, now, limit}, func(r *sql.Rows) error {
		var s SignIn
		err := r.Scan(&s.TokenHash, &s.UserID, &s.Data, &s.ExpiresAt)
		list = append(list, s)
		return err
	})
	return list, err
}

// End ends the session of a browser.
func (s SignIns) End(ctx context.Context, tokenHash string) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`DELETE FROM sign_in WHERE token_hash = $1`, tokenHash)
	}))
}

// EndAll ends all sessions of a user, but for one.
func (s SignIns) EndAll(ctx context.Context, id postern.UserID, but string, act Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(endSignIns(t, id, but), act.record(t))
	}))
}

// Remove removes a chunk of the sessions that have ended; more says that
// there may be others.
func (s SignIns) Remove(ctx context.Context, now postern.Time) (more bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM sign_in WHERE token_hash IN (SELECT token_hash FROM sign_in WHERE expires_at <= $1 LIMIT $2 + 0)`, now, purgeChunk)
		more = n == purgeChunk
		return err
	}))
	return more, err
}

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
