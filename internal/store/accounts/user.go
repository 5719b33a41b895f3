package accounts

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

const setUpToken = "set_up_token" // the name of the setting that holds the hash of the token, in hexadecimal

// SetUp creates the first user and a workspace, and uses the set-up token up. The user
// becomes an operator and owns the new workspace and all existing ones.
type SetUp struct {
	TokenHash    string
	User         postern.User
	PasswordHash string
	Workspace    postern.Workspace
	Act          store.Act
}

func (o SetUp) apply(t *db.Tx) error {
	n, err := t.Changed(`DELETE FROM setting WHERE name = $1 AND value = $2 AND NOT EXISTS (SELECT 1
		FROM users)`, setUpToken, o.TokenHash)
	if err != nil {
		return err
	}
	if n == 0 {
		return postern.Errorf(postern.NotFound,
			"this set-up link was used already or replaced; the server prints the newest one when it starts")
	}
	return errors.Join(
		store.InsertWorkspace(t, o.Workspace),
		insertUser(t, o.User, o.PasswordHash),
		t.Exec(`UPDATE users SET operator = 1 WHERE id = $1`, o.User.ID),
		t.Exec(`INSERT INTO member (user_id, workspace_id, role, joined_at)
			SELECT CAST($1 AS TEXT), id, CAST($2 AS TEXT), CAST($3 AS BIGINT) FROM workspace`, o.User.ID, postern.Owner,
			o.User.CreatedAt),
		o.Act.Record(t),
	)
}

// SetUp creates the first user. It returns a NotFound error when the token is not the
// current one or a user exists.
func (s Users) SetUp(ctx context.Context, o SetUp) error { return s.db.Do(ctx, db.Func(o.apply)) }

// SetSetUpToken replaces the token of the set-up link by its hash; ok is false when a user
// exists already.
func (s Users) SetSetUpToken(ctx context.Context, hash string) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var users int
		if err := t.Row(`SELECT count(*) FROM users`, nil, &users); err != nil || users > 0 {
			return err
		}
		ok = true
		return store.PutSetting(t, setUpToken, hash)
	}))
	return ok, err
}

// None reports whether there are no users.
func (s Users) None(ctx context.Context) (bool, error) {
	var users int
	err := s.db.Row(ctx, `SELECT count(*) FROM (SELECT id FROM users LIMIT 1) one`, nil, &users)
	return users == 0, err
}

// SetUpToken returns the hash of the token of the set-up link, or "" when there is no open
// link.
func (s Users) SetUpToken(ctx context.Context) (hash string, err error) {
	return s.settings.Get(ctx, setUpToken)
}

// ByEmail returns the user with an e-mail address and the hash of the password; ok is false
// when there is none.
func (s Users) ByEmail(ctx context.Context, email string) (u postern.User, passwordHash string, ok bool, err error) {
	return found(s.find(ctx, `email = $1`, email))
}

// Get returns a user and the hash of the password; ok is false when there is none.
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

// endSignIns ends the login sessions of a user except one, and the sign-ins in progress:
// those whose password was checked but that have no login session yet.
func endSignIns(t *db.Tx, id postern.UserID, but string) error {
	return errors.Join(
		t.Exec(`DELETE FROM sign_in WHERE user_id = $1 AND token_hash <> $2`, id, but),
		t.Exec(`UPDATE users SET epoch = epoch + 1 WHERE id = $1`, id))
}

// Person is a user with what an operator sees of the account.
type Person struct {
	postern.User

	Chosen     bool // has chosen a password
	Second     bool // has a second step
	SignedIn   postern.Time
	Workspaces int
	Names      []string // of the first workspaces, by name
}

const (
	persons = `SELECT u.id, u.email, u.epoch, u.created_at, u.operator, u.password_hash <> '',
		EXISTS (SELECT 1 FROM totp WHERE user_id = u.id AND confirmed_at > 0) OR EXISTS (SELECT 1 FROM passkey
		WHERE user_id = u.id),
		coalesce((SELECT a.at FROM audit a WHERE a.workspace_id = '' AND a.user_id = u.id AND a.act = 'user.signed-in'
		ORDER BY a.n DESC LIMIT 1), 0),
		(SELECT count(*) FROM member WHERE user_id = u.id)
		FROM users u WHERE u.email > $1 AND u.email <= $5 AND ($2 = '' OR u.email LIKE $3 ESCAPE '\')
		ORDER BY u.email LIMIT $4 + 0`
	personsFrom = `SELECT coalesce(max(email), ''), count(*)
		FROM (SELECT email FROM users WHERE email > $1 ORDER BY email LIMIT $2 + 0) looked`
	// namesOf selects the first names of the workspaces of each of some users.
	namesOf = `SELECT user_id, name FROM (SELECT m.user_id, w.name, row_number() OVER (PARTITION BY m.user_id
		ORDER BY w.name, w.id) AS place
		FROM member m JOIN workspace w ON w.id = m.workspace_id WHERE m.user_id IN %s) named WHERE place <= $2
		ORDER BY user_id, place`
)

// List returns the users with text in their address, all for "", ordered by address, with
// the names of up to names of their workspaces, in the order of the names.
func (s Users) List(ctx context.Context, text string, names int, p store.Page) (f store.Found[Person], err error) {
	if f.Last, f.More, err = store.SearchFrom(ctx, s.db, personsFrom, p.After); err != nil {
		return f, err
	}
	args := []any{p.After, text, store.Within(text), p.Limit + 1, f.Last}
	err = s.db.Rows(ctx, persons, args, func(r *sql.Rows) error {
		var u Person
		err := r.Scan(&u.ID, &u.Email, &u.Epoch, &u.CreatedAt, &u.Operator, &u.Chosen, &u.Second, &u.SignedIn,
			&u.Workspaces)
		f.List = append(f.List, u)
		return err
	})
	f = f.UpTo(p.Limit, func(u Person) string { return u.Email })
	if err != nil || len(f.List) == 0 {
		return f, err
	}
	return f, s.nameWorkspaces(ctx, f.List, names)
}

func (s Users) nameWorkspaces(ctx context.Context, list []Person, names int) error {
	at, ids := map[postern.UserID]int{}, make([]postern.UserID, len(list))
	for i, u := range list {
		at[u.ID], ids[i] = i, u.ID
	}
	users, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return s.db.Rows(ctx, strings.Replace(namesOf, "%s", s.db.InList(1), 1), []any{string(users), names},
		func(r *sql.Rows) error {
			var id postern.UserID
			var name string
			err := r.Scan(&id, &name)
			list[at[id]].Names = append(list[at[id]].Names, name)
			return err
		})
}

// SetOperator makes the user with an address an operator, or withdraws that right. A user
// who already is in that state is left as is, and no act is recorded. Withdrawing the right
// also revokes what only an operator could make: invitations to workspaces of others, and
// links for the passwords of others.
func (s Users) SetOperator(ctx context.Context, email string, on bool, act store.Act) (u postern.User, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var ok bool
		if u, _, ok, err = userByEmail(t, email); err != nil {
			return err
		}
		if !ok {
			return postern.Errorf(postern.NotFound, "no user has this e-mail address")
		}
		if u.Operator == on {
			return nil
		}
		u.Operator, act.Subject = on, string(u.ID)
		err := errors.Join(t.Exec(`UPDATE users SET operator = $2 WHERE id = $1`, u.ID, on), act.Record(t))
		if !on {
			err = errors.Join(err, revokeForeign(t, u.ID, act.At),
				t.Exec(`DELETE FROM password_link WHERE made_by = $1`,
					u.ID))
		}
		return err
	}))
	return u, err
}

// revokeForeign revokes the open invitations by a user who is no longer an operator, except
// those to workspaces that the user owns.
func revokeForeign(t *db.Tx, id postern.UserID, at postern.Time) error {
	return t.Exec(`UPDATE invitation SET revoked_at = $2 WHERE invited_by = $1 AND used_at = 0 AND revoked_at = 0
		AND workspace_id NOT IN (SELECT workspace_id FROM member WHERE user_id = $1 AND role = $3)`, id, at, postern.Owner)
}

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
