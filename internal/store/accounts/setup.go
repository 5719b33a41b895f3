package accounts

import (
	"context"
	"errors"

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
		ok = false // an earlier run of this function may have been rolled back
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
