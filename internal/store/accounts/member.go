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

func insertUser(t *db.Tx, u postern.User, passwordHash string) error {
	return t.Exec(`INSERT INTO users (id, email, password_hash, created_at) VALUES ($1, $2, $3, $4)`, u.ID, u.Email,
		passwordHash, u.CreatedAt)
}

// userByEmail returns a user and the hash of the password; ok is false when there is no
// such user.
func userByEmail(t *db.Tx, email string) (u postern.User, passwordHash string, ok bool, err error) {
	err = t.Row(userWhere+`email = $1`, []any{email}, &u.ID, &u.Email, &u.Epoch, &u.CreatedAt, &u.Operator,
		&passwordHash)
	return found(u, passwordHash, err)
}

const invitationColumns = `i.id, i.workspace_id, w.name, i.email, i.role, i.invited_by, coalesce(u.email, ''),
	i.created_at, i.expires_at
	FROM invitation i JOIN workspace w ON w.id = i.workspace_id LEFT JOIN users u ON u.id = i.invited_by`

func scanInvitation(s db.Scanner) (i postern.Invitation, err error) {
	err = s.Scan(&i.ID, &i.WorkspaceID, &i.Workspace, &i.Email, &i.Role, &i.InvitedBy, &i.Inviter, &i.CreatedAt,
		&i.ExpiresAt)
	return i, err
}

// Create adds an invitation, replacing an open one for the same address. When the plan allows
// no more open invitations or members, it returns a ResourceLimit error.
func (s Invitations) Create(ctx context.Context, i postern.Invitation, tokenHash string, rule postern.Rule,
	act store.Act,
) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		u, _, _, err := userByEmail(t, i.Email)
		if err != nil {
			return err
		}
		s, err := store.ReadStanding(t, i.WorkspaceID, i.InvitedBy, u.ID)
		if err != nil {
			return err
		}
		if s.Of != "" {
			return postern.Invalid("/email", "belongs to a member of this workspace already")
		}
		if err := rule(s); err != nil {
			return err
		}
		if err := invitationCap().Check(t, i.WorkspaceID, i.Email, i.CreatedAt); err != nil {
			return err
		}
		if err := memberCap().Check(t, i.WorkspaceID); err != nil {
			return err
		}
		return errors.Join(
			t.Exec(`UPDATE invitation SET revoked_at = $3 WHERE workspace_id = $1 AND email = $2 AND used_at = 0
				AND revoked_at = 0`, i.WorkspaceID, i.Email, i.CreatedAt),
			t.Exec(`INSERT INTO invitation (id, workspace_id, email, role, token_hash, invited_by, created_at, expires_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
				i.ID, i.WorkspaceID, i.Email, i.Role, tokenHash, i.InvitedBy, i.CreatedAt, i.ExpiresAt),
			act.Record(t),
		)
	}))
}

// invitationCap counts the open invitations for other addresses than $2 at the time $3.
func invitationCap() store.Cap {
	return store.Cap{
		Limit: func(c postern.Caps) int { return c.Invitations },
		Count: `SELECT count(*) FROM invitation WHERE workspace_id = $1 AND email <> $2 AND used_at = 0
			AND revoked_at = 0 AND expires_at > $3`,
		What: "open invitations", Remedy: "revoke one, wait until one expires,",
	}
}

// List returns up to limit open invitations to a workspace, newest first.
func (s Invitations) List(ctx context.Context, ws postern.WorkspaceID, now postern.Time,
	limit int,
) (list []postern.Invitation, err error) {
	err = s.db.Rows(ctx, `SELECT `+invitationColumns+` WHERE i.workspace_id = $1 AND i.used_at = 0 AND i.revoked_at = 0
		AND i.expires_at > $2 ORDER BY i.id DESC LIMIT $3 + 0`, []any{ws, now, limit}, func(r *sql.Rows) error {
		i, err := scanInvitation(r)
		list = append(list, i)
		return err
	})
	return list, err
}

// Revoke ends an open invitation. The rule sees the invitation as a member with its role.
func (s Invitations) Revoke(ctx context.Context, ws postern.WorkspaceID, id postern.InvitationID, rule postern.Rule,
	act store.Act,
) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		s, err := store.ReadStanding(t, ws, act.UserID, "")
		if err != nil {
			return err
		}
		err = t.Row(`SELECT role FROM invitation WHERE workspace_id = $1 AND id = $2 AND used_at = 0 AND revoked_at = 0`,
			[]any{ws, id}, &s.Of)
		if errors.Is(err, sql.ErrNoRows) {
			return postern.Errorf(postern.NotFound, "this invitation was used already, or revoked")
		}
		if err != nil {
			return err
		}
		if err := rule(s); err != nil {
			return err
		}
		return errors.Join(t.Exec(`UPDATE invitation SET revoked_at = $3 WHERE workspace_id = $1
			AND id = $2`, ws, id, act.At), act.Record(t))
	}))
}

const openInvitation = `SELECT ` + invitationColumns + ` WHERE i.token_hash = $1 AND i.used_at = 0 AND i.revoked_at = 0
	AND i.expires_at > $2`

// Get returns an open invitation by the hash of its token; ok is false when there is none.
func (s Invitations) Get(ctx context.Context, tokenHash string,
	now postern.Time,
) (i postern.Invitation, ok bool, err error) {
	i, err = scanInvitation(s.db.One(ctx, openInvitation, tokenHash, now))
	if errors.Is(err, sql.ErrNoRows) {
		return i, false, nil
	}
	return i, err == nil, err
}

// Join is the acceptance of an invitation by an existing user or by a new one.
type Join struct {
	TokenHash    string
	User         postern.User
	PasswordHash string    // of a new user; "" for an existing user or one with an identity
	Identity     Identity  // of a new user without a password; zero otherwise
	Act          store.Act // its workspace is set to that of the invitation
}

// fresh reports whether the user is new.
func (o Join) fresh() bool { return o.PasswordHash != "" || o.Identity.Subject != "" }

func (o Join) apply(t *db.Tx) error {
	i, err := scanInvitation(t.One(openInvitation, o.TokenHash, o.Act.At))
	if errors.Is(err, sql.ErrNoRows) {
		return LinkOver()
	}
	if err != nil {
		return err
	}
	if err := checkMembership(t, i.WorkspaceID, o.User.ID); err != nil {
		return err
	}
	u, _, known, err := userByEmail(t, i.Email)
	switch {
	case err != nil:
		return err
	case o.User.Email != i.Email || !o.fresh() && u.ID != o.User.ID:
		return postern.Errorf(postern.ResourceNotAllowed, "this invitation is for another e-mail address")
	case o.fresh() && known:
		return postern.Errorf(postern.ResourceNotAllowed,
			"there is already an account for this address; sign in with it")
	case !known:
		err = insertUser(t, o.User, o.PasswordHash)
	}
	if err == nil && o.Identity.Subject != "" {
		err = insertIdentity(t, o.Identity)
	}
	o.Act.WorkspaceID, o.Act.Subject = i.WorkspaceID, string(i.ID)
	return errors.Join(err,
		t.Exec(`UPDATE invitation SET used_at = $2 WHERE id = $1`, i.ID, o.Act.At),
		insertMember(t, i.WorkspaceID, o.User, i.Role, o.Act.At),
		o.Act.Record(t),
	)
}

// Join accepts an invitation and uses it up, so that a token makes at most one member.
func (s Invitations) Join(ctx context.Context, o Join) error { return s.db.Do(ctx, db.Func(o.apply)) }

// LinkOver returns the error for a link that can no longer be used. It does not say why.
func LinkOver() error {
	return postern.Errorf(postern.NotFound,
		"this link was used already, has expired, or was revoked; ask for a new one")
}
