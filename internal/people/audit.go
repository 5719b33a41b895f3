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

// Act is one entry of the audit log.
type Act = store.Act

// ActQuery narrows a list of the audit log. A zero field does not narrow it.
type ActQuery struct {
	paging.Page
	Email string // of the person who acted
	Kind  string // one of ActKinds
}

// ActKinds lists the kinds of acts. The kind is the part of an act's name before the dot.
func ActKinds() []string {
	return []string{
		"device", "webhook", "message", "key", "member", "invitation", "user", "workspace", "contact", "chat",
	}
}

// List lists the acts in a workspace, newest first. Members need the role admin.
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

// act is the audit log's entry for something that an actor did.
func act(by access.Actor, at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: by.Member.UserID, Act: act, Subject: subject, Address: by.Address}
}
