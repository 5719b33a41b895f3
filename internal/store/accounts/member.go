package accounts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

const memberColumns = `m.user_id, u.email, u.operator, m.workspace_id, w.name, w.time_zone, m.role, m.joined_at
	FROM member m JOIN users u ON u.id = m.user_id JOIN workspace w ON w.id = m.workspace_id`

func scanMember(s db.Scanner) (m postern.Member, err error) {
	err = s.Scan(&m.UserID, &m.Email, &m.Operator, &m.WorkspaceID, &m.Workspace, &m.TimeZone, &m.Role, &m.JoinedAt)
	return m, err
}

const membershipsOf = `SELECT ` + memberColumns + ` WHERE m.user_id = $1 AND m.workspace_id > $2 ORDER BY m.workspace_id
	LIMIT $3 + 0`

// Memberships returns the workspaces that a user belongs to, oldest first.
func (s Members) Memberships(ctx context.Context, id postern.UserID, p store.Page) (list []postern.Member, err error) {
	err = s.db.Rows(ctx, membershipsOf, []any{id, p.After, p.Limit}, func(r *sql.Rows) error {
		m, err := scanMember(r)
		list = append(list, m)
		return err
	})
	return list, err
}

// Get returns a user's membership of a workspace; to a user who is no member the workspace
// does not exist.
func (s Members) Get(ctx context.Context, ws postern.WorkspaceID, id postern.UserID) (postern.Member, error) {
	m, err := scanMember(s.db.One(ctx, `SELECT `+memberColumns+` WHERE m.user_id = $1 AND m.workspace_id = $2`, id, ws))
	if errors.Is(err, sql.ErrNoRows) {
		return m, postern.Errorf(postern.NotFound, "there is no such workspace")
	}
	return m, err
}

// List returns up to limit members of a workspace in the order in which they joined.
func (s Members) List(ctx context.Context, ws postern.WorkspaceID, limit int) (list []postern.Member, err error) {
	err = s.db.Rows(ctx, `SELECT `+memberColumns+` WHERE m.workspace_id = $1 ORDER BY m.joined_at, m.user_id LIMIT $2 + 0`,
		[]any{ws, limit}, func(r *sql.Rows) error {
			m, err := scanMember(r)
			list = append(list, m)
			return err
		})
	return list, err
}

// SetRole changes the role of a member, and revokes the open invitations by that member
// which the new role may no longer make.
func (s Members) SetRole(ctx context.Context, ws postern.WorkspaceID, id postern.UserID, role postern.Role,
	rule postern.Rule, act store.Act,
) error {
	return s.change(ctx, ws, id, rule, act, func(t *db.Tx) error {
		return errors.Join(
			t.Exec(`UPDATE member SET role = $3 WHERE user_id = $1 AND workspace_id = $2`, id, ws, role),
			revokeInvitationsBy(t, ws, id, role, act.At))
	})
}

// Removal takes a user out of a workspace.
type Removal struct {
	WorkspaceID postern.WorkspaceID
	UserID      postern.UserID
	RevokeKeys  bool // also revoke the API keys that the user created
	Rule        postern.Rule
	Act         store.Act
}

// Remove takes a user out of a workspace, and revokes the open invitations that the user
// made or received.
func (s Members) Remove(ctx context.Context, o Removal) error {
	ws, id, act := o.WorkspaceID, o.UserID, o.Act
	return s.change(ctx, ws, id, o.Rule, act, func(t *db.Tx) error {
		if o.RevokeKeys {
			if err := store.RevokeKeysBy(t, ws, id, act); err != nil {
				return err
			}
		}
		return errors.Join(
			t.Exec(`DELETE FROM member WHERE user_id = $1 AND workspace_id = $2`, id, ws),
			t.Exec(`UPDATE invitation SET revoked_at = $3 WHERE workspace_id = $2 AND email = (SELECT email FROM users
				WHERE id = $1) AND used_at = 0 AND revoked_at = 0`, id, ws, act.At),
			revokeInvitationsBy(t, ws, id, "", act.At))
	})
}

func (s Members) change(
	ctx context.Context, ws postern.WorkspaceID, id postern.UserID, rule postern.Rule, act store.Act,
	change func(*db.Tx) error,
) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		s, err := store.ReadStanding(t, ws, act.UserID, id)
		if err != nil {
			return err
		}
		if s.Of == "" {
			return postern.Errorf(postern.NotFound, "there is no such member")
		}
		if err := rule(s); err != nil {
			return err
		}
		return errors.Join(change(t), act.Record(t))
	}))
}

// revokeInvitationsBy revokes the open invitations of a user that a role may not make.
func revokeInvitationsBy(t *db.Tx, ws postern.WorkspaceID, id postern.UserID, role postern.Role,
	at postern.Time,
) (err error) {
	for _, r := range postern.Roles() {
		if !role.Invites(r) {
			err = errors.Join(err, t.Exec(`UPDATE invitation SET revoked_at = $4 WHERE workspace_id = $2 AND invited_by = $1
				AND role = $3 AND used_at = 0 AND revoked_at = 0`, id, ws, r, at))
		}
	}
	return err
}

func memberCap() store.Cap {
	return store.Cap{
		Limit: func(c postern.Caps) int { return c.Members },
		Count: `SELECT count(*) FROM member WHERE workspace_id = $1`,
		What:  "members", Remedy: "remove one",
	}
}

// checkMembership returns an error when a user cannot become a member of one more workspace,
// or the workspace has no room for a member.
//
// Single writer: count.
func checkMembership(t *db.Tx, ws postern.WorkspaceID, id postern.UserID) error {
	if err := memberCap().Check(t, ws); err != nil {
		return err
	}
	n := 0
	err := t.Row(`SELECT count(*) FROM member WHERE user_id = $1`, []any{id}, &n)
	if err == nil && n >= postern.MaxMemberships {
		err = postern.Errorf(postern.ResourceLimit,
			"a person can belong to %d workspaces; leave one first", postern.MaxMemberships)
	}
	return err
}

// insertMember adds a user to a workspace, and revokes the other open invitations to the
// same address: a member who is removed later must not come back by one of them.
func insertMember(t *db.Tx, ws postern.WorkspaceID, u postern.User, role postern.Role, at postern.Time) error {
	return errors.Join(
		t.Exec(`INSERT INTO member (user_id, workspace_id, role, joined_at) VALUES ($1, $2, $3, $4)`, u.ID, ws, role,
			at),
		t.Exec(`UPDATE invitation SET revoked_at = $3 WHERE workspace_id = $1 AND email = $2 AND used_at = 0
			AND revoked_at = 0`, ws, u.Email, at))
}
