package gateway

import (
	"context"
	"encoding/hex"
	"strings"

	"postern/internal/postern"
	"postern/internal/store"
)

// WorkspaceUse is a workspace with what it uses of its plan.
type WorkspaceUse = store.WorkspaceUse

// Person is a user with what operators see of one.
type Person = store.Person

const everywhere = postern.WorkspaceID("operators") // whose cursors are those of lists of the whole server

// WorkspacesWithUsage lists to operators the workspaces that have a text in their name,
// or as their id.
func (g Operators) WorkspacesWithUsage(ctx context.Context, by Actor, text string, p Page) (List[WorkspaceUse], error) {
	if err := by.needsOperator(); err != nil {
		return List[WorkspaceUse]{}, err
	}
	sp, err := g.open(everywhere, "workspaces", p)
	if err != nil {
		return List[WorkspaceUse]{}, err
	}
	rows, err := g.db.Workspaces.WithUsage(ctx, store.MonthOf(g.db.Now()), strings.TrimSpace(text), sp)
	return page(g.core, everywhere, "workspaces", rows, sp.Limit, func(u WorkspaceUse) string { return string(u.ID) }), err
}

// WorkspaceWithUsage shows operators one workspace.
func (g Operators) WorkspaceWithUsage(ctx context.Context, by Actor, id postern.WorkspaceID) (WorkspaceUse, error) {
	if err := by.needsOperator(); err != nil {
		return WorkspaceUse{}, err
	}
	return g.db.Workspaces.GetWithUsage(ctx, id, store.MonthOf(g.db.Now()))
}

// Devices lists to operators the devices of any workspace.
func (g Operators) Devices(ctx context.Context, by Actor, id postern.WorkspaceID, p Page) (List[postern.Device], error) {
	if err := by.needsOperator(); err != nil {
		return List[postern.Device]{}, err
	}
	sp, err := g.open(id, "devices", p)
	if err != nil {
		return List[postern.Device]{}, err
	}
	rows, err := g.db.Devices.List(ctx, id, nil, sp)
	return page(g.core, id, "devices", rows, sp.Limit, func(d postern.Device) string { return string(d.ID) }), err
}

// Beyond lists to operators the devices of a workspace that another number of devices
// would pause.
func (g Operators) Beyond(ctx context.Context, by Actor, id postern.WorkspaceID, devices int) ([]postern.Device, error) {
	if err := by.needsOperator(); err != nil {
		return nil, err
	}
	return g.db.Devices.BeyondLimit(ctx, id, devices)
}

// Users lists to operators the users that have a text in their address.
func (g Operators) Users(ctx context.Context, by Actor, text string, p Page) (List[Person], error) {
	if err := by.needsOperator(); err != nil {
		return List[Person]{}, err
	}
	sp, err := g.open(everywhere, "persons", p)
	if err != nil {
		return List[Person]{}, err
	}
	after, err := hex.DecodeString(sp.After) // an address has points, and a cursor's place has none
	if err != nil {
		return List[Person]{}, err
	}
	rows, err := g.db.Users.List(ctx, strings.ToLower(strings.TrimSpace(text)), namesShown, store.Page{After: string(after), Limit: sp.Limit})
	return page(g.core, everywhere, "persons", rows, sp.Limit, func(u Person) string { return hex.EncodeToString([]byte(u.Email)) }), err
}
