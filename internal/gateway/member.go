package gateway

import (
	"context"

	"postern/internal/postern"
	"postern/internal/store"
)

// List lists who belongs to a workspace. A member needs the role of an admin.
func (g Members) List(ctx context.Context, by Actor, ws postern.WorkspaceID) ([]postern.Member, error) {
	if err := by.needs(ws, postern.Admin); err != nil {
		return nil, err
	}
	if _, err := g.db.Workspaces.Get(ctx, ws); err != nil {
		return nil, err
	}
	return g.db.Members.List(ctx, ws, maxMembers)
}

// ChangeRole changes what a member may do.
func (g Members) ChangeRole(ctx context.Context, by Actor, ws postern.WorkspaceID, id postern.UserID, role postern.Role) error {
	if err := by.needs(ws, postern.Admin); err != nil {
		return err
	}
	if err := checkRole(role); err != nil {
		return err
	}
	return g.db.Members.SetRole(ctx, ws, id, role, by.gives(role), by.act(g.time(), ws, "member.made-"+string(role), string(id)))
}

// Remove takes a member out of a workspace; the account stays.
func (g Members) Remove(ctx context.Context, by Actor, ws postern.WorkspaceID, id postern.UserID) error {
	if err := by.needs(ws, postern.Admin); err != nil {
		return err
	}
	return g.db.Members.Remove(ctx, ws, id, by.gives(""), by.act(g.time(), ws, "member.removed", string(id)))
}

func checkRole(role postern.Role) error {
	if !role.Covers(role) {
		return postern.Invalid("/role", "a role is one of %v", postern.Roles())
	}
	return nil
}

// gives is the rule for giving somebody a role, "" for taking one away: nobody
// gives more than the own role, nor changes somebody mightier, and a workspace
// keeps an owner. It is asked in the transaction of the change, so that whoever
// has just lost a role has lost it.
func (a Actor) gives(role postern.Role) store.Rule {
	return func(s store.Standing) error {
		switch {
		case a.stillOperator(s):
		case !s.By.Covers(postern.Admin):
			return postern.Errorf(postern.MissingScope, "only admins and owners change who belongs to a workspace")
		case s.Of != "" && !s.By.Covers(s.Of), role != "" && !s.By.Covers(role):
			return postern.Errorf(postern.MissingScope, "your role in this workspace, %s, covers less; ask an owner", s.By)
		}
		if s.Of == postern.Owner && role != postern.Owner && s.Owners == 1 {
			return postern.Invalid("/role", "a workspace keeps at least one owner; make somebody else an owner first")
		}
		return nil
	}
}
