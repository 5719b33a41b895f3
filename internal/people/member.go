package people

import (
	"context"
	"errors"
	"strings"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store/accounts"
)

// List lists the members of a workspace in the order in which they joined, at most the first
// 1,000. Members need the role admin.
func (g Members) List(ctx context.Context, by access.Actor, ws postern.WorkspaceID) ([]postern.Member, error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return nil, err
	}
	if _, err := g.db.Workspaces.Get(ctx, ws); err != nil {
		return nil, err
	}
	return g.accounts.Members.List(ctx, ws, maxMembers)
}

// ChangeRole changes the role of a member. Members need the role admin, and cannot give or
// change a role higher than their own.
func (g Members) ChangeRole(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, id postern.UserID, role postern.Role,
) error {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return err
	}
	if err := checkRole(role); err != nil {
		return err
	}
	return g.accounts.Members.SetRole(
		ctx, ws, id, role, by.Gives(role), act(by, g.time(), ws, "member.made-"+string(role), string(id)),
	)
}

// Removal says what happens to the API keys that a removed member created.
type Removal struct {
	RevokeKeys bool // they stop working; otherwise they stay
}

// Remove removes a member from a workspace. The account stays. The rules are those of
// ChangeRole.
func (g Members) Remove(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, id postern.UserID, in Removal,
) error {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return err
	}
	return g.accounts.Members.Remove(ctx, accounts.Removal{
		WorkspaceID: ws, UserID: id, RevokeKeys: in.RevokeKeys, Rule: by.Gives(""),
		Act: act(by, g.time(), ws, "member.removed", string(id)),
	})
}

// Keys counts the working API keys that each member created. Members need the role admin.
func (g Members) Keys(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID,
) (map[postern.UserID]int, error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return nil, err
	}
	return g.db.Keys.CreatedBy(ctx, ws, g.time())
}

func checkRole(role postern.Role) error {
	if !role.Covers(role) {
		return postern.Invalid("/role", "the role must be one of %v", postern.Roles())
	}
	return nil
}

// DescribeWorkspace changes the name of a workspace, and the time zone in which its times are shown. Members need the
// role admin.
func (g Members) DescribeWorkspace(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, name, zone string,
) error {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return err
	}
	name, zone = strings.TrimSpace(name), strings.TrimSpace(zone)
	if err := errors.Join(postern.CheckName("/name", name), postern.CheckTimeZone("/timeZone", zone)); err != nil {
		return err
	}
	subject := name
	if zone != "" {
		subject += ", " + zone
	}
	return g.db.Workspaces.Describe(ctx, name, zone, by.Holds(postern.Admin),
		act(by, g.time(), ws, "workspace.changed", subject))
}
