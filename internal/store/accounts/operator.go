package accounts

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

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
