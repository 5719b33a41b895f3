package accounts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

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

// Get returns an open invitation by the hash of its token; ok is false if no open invitation has it.
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
