package gateway

import (
	"context"

	"postern/internal/postern"
	"postern/internal/store"
)

// Actor is who does what no API key may do: a member of a workspace in the
// dashboard, or the operator.
type Actor struct {
	Member  postern.Member
	Address string // of the browser

	operator bool
}

// Operator is whoever can reach the server's own socket. It may do everything.
func Operator() Actor { return Actor{operator: true} }

// needs checks that the actor has at least a role in a workspace.
func (a Actor) needs(ws postern.WorkspaceID, role postern.Role) error {
	switch {
	case a.operator:
		return nil
	case a.Member.UserID == "" || a.Member.WorkspaceID != ws:
		return postern.Errorf(postern.NotFound, "there is no such workspace")
	case !a.Member.Role.Covers(role):
		return postern.Errorf(postern.MissingScope, "your role in this workspace, %s, does not allow this; ask an admin", a.Member.Role)
	}
	return nil
}

// act is what the audit log keeps.
func (a Actor) act(at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: a.Member.UserID, Act: act, Subject: subject, Address: a.Address}
}

// Acts lists the newest acts in a workspace, at most a page of them. A member
// needs the role of an admin.
func (g *Gateway) Acts(ctx context.Context, by Actor, ws postern.WorkspaceID) ([]store.Act, error) {
	if err := by.needs(ws, postern.Admin); err != nil {
		return nil, err
	}
	return g.db.Acts(ctx, ws, maxActs)
}
