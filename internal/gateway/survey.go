package gateway

import (
	"context"
	"strings"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// WorkspaceUse is a workspace with what it uses of its plan.
type WorkspaceUse = store.WorkspaceUse

const everywhere = postern.WorkspaceID("operators") // whose cursors are those of lists of the whole server

// ListWithUsage lists to operators the workspaces that have a text in their name,
// or as their id.
func (g Workspaces) ListWithUsage(ctx context.Context, by access.Actor, text string, p paging.Page) (paging.List[WorkspaceUse], error) {
	if err := by.NeedsOperator(); err != nil {
		return paging.List[WorkspaceUse]{}, err
	}
	sp, err := g.open(everywhere, "workspaces", p)
	if err != nil {
		return paging.List[WorkspaceUse]{}, err
	}
	rows, err := g.db.Workspaces.WithUsage(ctx, store.MonthOf(g.db.Now()), strings.TrimSpace(text), sp)
	return paging.Cut(g.cursors, everywhere, "workspaces", rows, sp.Limit, func(u WorkspaceUse) string { return string(u.ID) }), err
}

// GetWithUsage shows operators one workspace.
func (g Workspaces) GetWithUsage(ctx context.Context, by access.Actor, id postern.WorkspaceID) (WorkspaceUse, error) {
	if err := by.NeedsOperator(); err != nil {
		return WorkspaceUse{}, err
	}
	return g.db.Workspaces.GetWithUsage(ctx, id, store.MonthOf(g.db.Now()))
}

// Devices lists to operators the devices of any workspace.
func (g Workspaces) Devices(ctx context.Context, by access.Actor, id postern.WorkspaceID, p paging.Page) (paging.List[postern.Device], error) {
	if err := by.NeedsOperator(); err != nil {
		return paging.List[postern.Device]{}, err
	}
	sp, err := g.open(id, "devices", p)
	if err != nil {
		return paging.List[postern.Device]{}, err
	}
	rows, err := g.db.Devices.List(ctx, id, nil, sp)
	return paging.Cut(g.cursors, id, "devices", rows, sp.Limit, func(d postern.Device) string { return string(d.ID) }), err
}

// Beyond lists to operators the devices of a workspace that another number of devices
// would pause.
func (g Workspaces) Beyond(ctx context.Context, by access.Actor, id postern.WorkspaceID, devices int) ([]postern.Device, error) {
	if err := by.NeedsOperator(); err != nil {
		return nil, err
	}
	return g.db.Devices.BeyondLimit(ctx, id, devices)
}
