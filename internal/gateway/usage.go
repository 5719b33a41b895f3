package gateway

import (
	"context"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

// Used is how much there is of something, and how much of it is used.
type Used struct {
	Used  int `json:"used" doc:"How many are in use; a key that is limited to devices sees only theirs." example:"17"`
	Limit int `json:"limit" doc:"How many the workspace may use." example:"3000"`
}

// Usage is what a workspace uses of its plan.
type Usage struct {
	Month    string       `json:"month" doc:"The UTC calendar month." example:"2026-11"`
	ResetsAt postern.Time `json:"resetsAt" format:"date-time" doc:"When the month ends and the count of messages starts again." example:"2026-12-01T00:00:00.000Z"`
	Messages Used         `json:"messages" doc:"Outbound messages accepted in the month, except those that were given back."`
	Devices  Used         `json:"devices" doc:"Devices that are linked or being linked."`
}

// Usage tells what the caller's workspace uses of its plan. A key limited to
// devices counts these only, beside the limits of the whole workspace.
func (g Statistics) Usage(ctx context.Context, c access.Caller) (Usage, error) {
	if err := c.Permit(postern.UsageRead); err != nil {
		return Usage{}, err
	}
	month := store.MonthOf(g.db.Now())
	u := Usage{Month: month, ResetsAt: store.MonthEnd(month), Messages: Used{Limit: c.Plan.Messages}, Devices: Used{Limit: c.Plan.Devices}}
	var err error
	if u.Devices.Used, err = g.db.Usage.Slots(ctx, c.Workspace(), c.Key.Devices); err != nil {
		return Usage{}, err
	}
	if c.Key.Devices != nil {
		u.Messages.Used, err = g.db.Usage.MessagesBy(ctx, c.Workspace(), month, c.Key.Devices)
	} else {
		u.Messages.Used, err = g.db.Usage.Messages(ctx, c.Workspace(), month)
	}
	return u, err
}

// EverSent tells whether the caller's workspace has ever sent a message.
func (g Statistics) EverSent(ctx context.Context, c access.Caller) (bool, error) {
	if err := c.PermitWhole(postern.UsageRead); err != nil {
		return false, err
	}
	return g.db.Usage.EverSent(ctx, c.Workspace())
}
