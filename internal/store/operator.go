package store

import (
	"context"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// SetOperator makes the user with an address an operator, or takes that back. What
// is so already is left alone, and not recorded. What only an operator could make goes
// with the right: invitations, and links for the passwords of others.
func (s Users) SetOperator(ctx context.Context, email string, on bool, act Act) (u postern.User, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var ok bool
		if u, _, ok, err = userByEmail(t, email); err != nil {
			return err
		}
		if !ok {
			return postern.Errorf(postern.NotFound, "nobody has this e-mail address")
		}
		if u.Operator == on {
			return nil
		}
		u.Operator, act.Subject = on, string(u.ID)
		err := errors.Join(t.Exec(`UPDATE users SET operator = $2 WHERE id = $1`, u.ID, on), act.record(t))
		if !on {
			err = errors.Join(err, revokeForeign(t, u.ID, act.At), t.Exec(`DELETE FROM password_link WHERE made_by = $1`, u.ID))
		}
		return err
	}))
	return u, err
}

// revokeForeign revokes the open invitations of a user who has ceased to be an
// operator, but for those to workspaces that the user owns.
func revokeForeign(t *db.Tx, id postern.UserID, at postern.Time) error {
	return t.Exec(`UPDATE invitation SET revoked_at = $2 WHERE invited_by = $1 AND used_at = 0 AND revoked_at = 0
		AND workspace_id NOT IN (SELECT workspace_id FROM member WHERE user_id = $1 AND role = $3)`, id, at, postern.Owner)
}

func isOperator(t *db.Tx, id postern.UserID) (is bool, err error) {
	err = t.Row(`SELECT count(*) > 0 FROM users WHERE id = $1 AND operator = 1`, []any{id}, &is)
	return is, err
}

// operatorActs records what an operator does. It is asked in the transaction of the
// change: whoever has just ceased to be one is refused. Who reaches the server's
// socket has no user id, and is one always.
func recordOperatorActs(t *db.Tx, acts []Act) error {
	for _, a := range acts {
		if a.UserID == "" {
			continue
		}
		if is, err := isOperator(t, a.UserID); err != nil || !is {
			return errors.Join(err, postern.Errorf(postern.NotFound, "there is no such page"))
		}
	}
	return recordActs(t, acts)
}
