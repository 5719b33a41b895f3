package people

import (
	"context"
	"strconv"
	"strings"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// Act is one privileged act.
type Act = store.Act

// ActQuery asks for a part of the audit log; empty members ask for nothing.
type ActQuery struct {
	paging.Page
	Email string // of who did it
	Kind  string // one of ActKinds
}

// ActKinds are the kinds of acts: what comes before the point.
func ActKinds() []string {
	return []string{"device", "webhook", "message", "key", "member", "invitation", "user", "workspace"}
}

// List lists the acts in a workspace, the newest first. A member needs the role of
// an admin.
func (g Audit) List(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, q ActQuery,
) (paging.List[store.Act], error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return paging.List[store.Act]{}, err
	}
	sp, err := g.open(ws, "acts", q.Page)
	if err != nil {
		return paging.List[store.Act]{}, err
	}
	before, err := g.cursors.Number(ws, "acts", q.Cursor)
	if err != nil {
		return paging.List[store.Act]{}, err
	}
	rows, err := g.db.Audit.List(
		ctx,
		ws,
		store.ActFilter{
			Email:  strings.ToLower(strings.TrimSpace(q.Email)),
			Kind:   q.Kind,
			Before: before,
			Limit:  sp.Limit,
		},
	)
	return paging.Cut(
		g.cursors, ws, "acts", rows, sp.Limit, func(a store.Act) string { return strconv.FormatInt(a.N, 10) },
	), err
}

// act is what the audit log keeps of an actor's act.
func act(by access.Actor, at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: by.Member.UserID, Act: act, Subject: subject, Address: by.Address}
}

// rule is a rule of package access, for the store to check in a transaction.
func rule(r access.Rule) store.Rule {
	return func(s store.Standing) error { return r(access.Standing(s)) }
}
