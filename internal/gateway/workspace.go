package gateway

import (
	"context"
	"fmt"
	"strings"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// NewWorkspace describes a workspace to create.
type NewWorkspace struct{ Name, Plan string }

// Create creates a workspace without members. For operators.
func (g Workspaces) Create(ctx context.Context, by access.Actor, in NewWorkspace) (postern.Workspace, error) {
	if err := by.NeedsOperator(); err != nil {
		return postern.Workspace{}, err
	}
	if err := postern.CheckName("/name", in.Name); err != nil {
		return postern.Workspace{}, err
	}
	if err := checkPlan(in.Plan); err != nil {
		return postern.Workspace{}, err
	}
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: in.Name, Plan: in.Plan, CreatedAt: g.time()}
	return ws, g.db.Workspaces.Create(ctx, ws, actOn(by, ws.CreatedAt, ws.ID, "workspace.created", in.Name))
}

// List lists all workspaces to operators.
func (g Workspaces) List(ctx context.Context, by access.Actor) ([]postern.Workspace, error) {
	if err := by.NeedsOperator(); err != nil {
		return nil, err
	}
	return g.db.Workspaces.List(ctx)
}

func checkPlan(plan string) error {
	if _, ok := postern.PlanByName(plan); !ok {
		return postern.Invalid("/plan", "the plan must be one of %s", listed(postern.PlanNames()))
	}
	return nil
}

// SetPlan changes the plan of a workspace. For operators.
func (g Workspaces) SetPlan(ctx context.Context, by access.Actor, id postern.WorkspaceID, plan string) error {
	if err := by.NeedsOperator(); err != nil {
		return err
	}
	if err := checkPlan(plan); err != nil {
		return err
	}
	p, _ := postern.PlanByName(plan)
	now := g.time()
	return g.db.Workspaces.SetPlan(ctx, id, p, now, actOn(by, now, id, "workspace.plan-changed", plan))
}

// ChangeLimits gives a workspace its own limits in place of those of its plan and of the
// server: nil keeps a limit, a negative number resets it. For operators.
func (g Workspaces) ChangeLimits(
	ctx context.Context, by access.Actor, id postern.WorkspaceID, change postern.Limits,
) (postern.Workspace, error) {
	if err := by.NeedsOperator(); err != nil {
		return postern.Workspace{}, err
	}
	if err := checkLimits(change); err != nil {
		return postern.Workspace{}, err
	}
	now := g.time()
	return g.db.Workspaces.ChangeLimits(
		ctx, id, change, now, actOn(by, now, id, "workspace.limits-changed", limitWords(change)),
	)
}

func checkLimits(change postern.Limits) error {
	for pointer, n := range map[string]*int{
		"/messages": change.Messages, "/devices": change.Devices, "/storageMiB": change.StorageMiB,
	} {
		if n != nil && *n > maxLimit {
			return postern.Invalid(pointer, "at most %d", maxLimit)
		}
	}
	for pointer, n := range map[string]*int{"/eventDays": change.EventDays, "/messageDays": change.MessageDays} {
		if n != nil && (*n == 0 || *n > maxDays) {
			return postern.Invalid(pointer, "from 1 to %d days", maxDays)
		}
	}
	return nil
}

// limitWords describes a change of limits for the audit log.
func limitWords(change postern.Limits) string {
	var list []string
	for _, c := range []struct {
		name string
		n    *int
	}{
		{"messages", change.Messages},
		{"devices", change.Devices},
		{"days of events", change.EventDays},
		{"days of messages", change.MessageDays},
		{"MiB of stored files", change.StorageMiB},
	} {
		switch {
		case c.n == nil:
		case *c.n < 0:
			list = append(list, c.name+" reset")
		default:
			list = append(list, fmt.Sprint(c.name, " ", *c.n))
		}
	}
	return strings.Join(list, ", ")
}

// Caller returns the operator's caller in a workspace: every scope, every device, and the
// limits of the workspace's plan. It needs the server's own socket: someone who takes over
// the account of an operator must not be able to read every workspace.
func (g Workspaces) Caller(ctx context.Context, by access.Actor, id postern.WorkspaceID) (access.Caller, error) {
	if err := by.NeedsSocket(); err != nil {
		return access.Caller{}, err
	}
	ws, err := g.db.Workspaces.Get(ctx, id)
	if err != nil {
		return access.Caller{}, err
	}
	plan, ok := ws.Entitlement()
	if !ok {
		return access.Caller{}, checkPlan(ws.Plan)
	}
	return access.OperatorIn(id, plan), nil
}

// WorkspaceUse is a workspace with what it uses of its plan.
type WorkspaceUse = store.WorkspaceUse

// ListWithUsage lists to operators the workspaces whose name contains a text or whose id
// is that text. A page may be short although there is a next one.
func (g Workspaces) ListWithUsage(
	ctx context.Context, by access.Actor, text string, p paging.Page,
) (paging.List[WorkspaceUse], error) {
	if err := by.NeedsOperator(); err != nil {
		return paging.List[WorkspaceUse]{}, err
	}
	after, rows, err := g.cursors.Open(paging.Everywhere, "workspaces", p)
	if err != nil {
		return paging.List[WorkspaceUse]{}, err
	}
	f, err := g.db.Workspaces.WithUsage(
		ctx, store.MonthOf(g.db.Now()), strings.TrimSpace(text), store.Page{After: after, Limit: rows - 1},
	)
	if err != nil || !f.More {
		return paging.List[WorkspaceUse]{Data: f.List}, err
	}
	return paging.List[WorkspaceUse]{Data: f.List, Next: g.cursors.At(paging.Everywhere, "workspaces", f.Last)}, nil
}

// GetWithUsage shows operators one workspace.
func (g Workspaces) GetWithUsage(ctx context.Context, by access.Actor, id postern.WorkspaceID) (WorkspaceUse, error) {
	if err := by.NeedsOperator(); err != nil {
		return WorkspaceUse{}, err
	}
	return g.db.Workspaces.GetWithUsage(ctx, id, store.MonthOf(g.db.Now()))
}

// Devices lists the devices of any workspace to operators.
func (g Workspaces) Devices(
	ctx context.Context, by access.Actor, id postern.WorkspaceID, p paging.Page,
) (paging.List[postern.Device], error) {
	if err := by.NeedsOperator(); err != nil {
		return paging.List[postern.Device]{}, err
	}
	sp, err := g.open(id, "devices", p)
	if err != nil {
		return paging.List[postern.Device]{}, err
	}
	rows, err := g.db.Devices.List(ctx, id, nil, sp)
	return paging.Cut(
		g.cursors, id, "devices", rows, sp.Limit, func(d postern.Device) string { return string(d.ID) },
	), err
}

// Beyond lists to operators the devices that a lower limit of devices would pause.
func (g Workspaces) Beyond(
	ctx context.Context, by access.Actor, id postern.WorkspaceID, devices int,
) ([]postern.Device, error) {
	if err := by.NeedsOperator(); err != nil {
		return nil, err
	}
	return g.db.Devices.BeyondLimit(ctx, id, devices)
}
