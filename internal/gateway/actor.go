package gateway

import (
	"context"
	"strconv"
	"strings"

	"postern/internal/postern"
	"postern/internal/store"
)

// Actor is who does what no API key may do: a member of a workspace in the
// dashboard, or an operator: see AsOperator and Operator.
type Actor struct {
	Member  postern.Member
	Address string // of the browser

	operator bool
}

// Operator is whoever can reach the server's own socket. It may do everything, and
// has no user id.
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

// holds is the rule for what needs a role. It is asked in the transaction of the
// change, like that of [Actor.gives].
func (a Actor) holds(role postern.Role) store.Rule {
	return func(s store.Standing) error {
		if a.stillOperator(s) || s.By.Covers(role) {
			return nil
		}
		return postern.Errorf(postern.MissingScope, "you are no %s of this workspace any more; ask an admin", role)
	}
}

// act is what the audit log keeps.
func (a Actor) act(at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: a.Member.UserID, Act: act, Subject: subject, Address: a.Address}
}

// did is what the audit log keeps of what a caller does: of a member everything
// that needs a role, of a key nothing. The name is that of the subject: it may be
// gone when the log is read.
func (c Caller) did(at postern.Time, act, subject, name string) []store.Act {
	if c.Member.UserID == "" {
		return nil
	}
	a := Actor{Member: c.Member, Address: c.Address}.act(at, c.Workspace(), act, subject)
	a.Name = name
	return []store.Act{a}
}

// Act is one privileged act.
type Act = store.Act

// ActQuery asks for a part of the audit log; empty members ask for nothing.
type ActQuery struct {
	Page
	Email string // of who did it
	Kind  string // one of ActKinds
}

// ActKinds are the kinds of acts: what comes before the point.
func ActKinds() []string {
	return []string{"device", "webhook", "message", "key", "member", "invitation", "user", "workspace"}
}

// List lists the acts in a workspace, the newest first. A member needs the role of
// an admin.
func (g Audit) List(ctx context.Context, by Actor, ws postern.WorkspaceID, q ActQuery) (List[store.Act], error) {
	if err := by.needs(ws, postern.Admin); err != nil {
		return List[store.Act]{}, err
	}
	sp, err := g.open(ws, "acts", q.Page)
	if err != nil {
		return List[store.Act]{}, err
	}
	before, err := g.openPlace(ws, "acts", q.Cursor)
	if err != nil {
		return List[store.Act]{}, err
	}
	rows, err := g.db.Audit.List(ctx, ws, store.ActFilter{Email: strings.ToLower(strings.TrimSpace(q.Email)), Kind: q.Kind, Before: before, Limit: sp.Limit})
	return page(g.core, ws, "acts", rows, sp.Limit, func(a store.Act) string { return strconv.FormatInt(a.N, 10) }), err
}
