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
	return g.page(ctx, ws, ws, q)
}

// ListAccounts lists to operators the acts that belong to no workspace, newest first: what people
// did to their accounts, attempts to sign in that failed, and what operators did to accounts.
func (g Audit) ListAccounts(ctx context.Context, by access.Actor, q ActQuery) (paging.List[store.Act], error) {
	if err := by.NeedsOperator(); err != nil {
		return paging.List[store.Act]{}, err
	}
	return g.page(ctx, "", paging.Everywhere, q)
}

// page reads a page of the acts in a workspace, whose cursors are valid in one place only.
func (g Audit) page(
	ctx context.Context, ws, place postern.WorkspaceID, q ActQuery,
) (paging.List[store.Act], error) {
	sp, err := g.open(place, "acts", q.Page)
	if err != nil {
		return paging.List[store.Act]{}, err
	}
	before, err := g.cursors.Number(place, "acts", q.Cursor)
	if err != nil {
		return paging.List[store.Act]{}, err
	}
	f := store.ActFilter{
		Email: strings.ToLower(strings.TrimSpace(q.Email)), Kind: q.Kind, Before: before, Limit: sp.Limit,
	}
	rows, err := g.db.Audit.List(ctx, ws, f)
	return paging.Cut(
		g.cursors, place, "acts", rows, sp.Limit, func(a store.Act) string { return strconv.FormatInt(a.N, 10) },
	), err
}

// ownActs is how many acts a person sees of their own account.
const ownActs = 10

// ListOwn lists the last acts on a person's own account, newest first, with attempts to sign in
// that failed.
func (g Audit) ListOwn(ctx context.Context, self access.Self) ([]store.Act, error) {
	if err := self.Needs(); err != nil {
		return nil, err
	}
	return g.db.Audit.List(ctx, "", store.ActFilter{User: self.ID, Limit: ownActs})
}

// act is the audit log's entry for something that an actor did.
func act(by access.Actor, at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: by.Member.UserID, Act: act, Subject: subject, Address: by.Address}
}
