package gateway

import (
	"context"
	"encoding/json"
	"strconv"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// Health is a change of what became of a device, as its event told it.
type Health struct {
	Type   postern.EventType
	At     postern.Time
	Reason string // "" when there is none
	Number string // of the account then
}

// Health lists what became of a device, the newest first, as far back as
// events are kept.
func (g Devices) Health(ctx context.Context, c access.Caller, id postern.DeviceID, p paging.Page) (paging.List[Health], error) {
	if err := c.Permit(postern.DevicesRead); err != nil {
		return paging.List[Health]{}, err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return paging.List[Health]{}, err
	}
	kind := "health " + string(id)
	sp, err := g.open(c.Workspace(), kind, p)
	if err != nil {
		return paging.List[Health]{}, err
	}
	before, err := g.cursors.Number(c.Workspace(), kind, p.Cursor)
	if err != nil {
		return paging.List[Health]{}, err
	}
	rows, err := g.db.Events.DeviceHealth(ctx, c.Workspace(), id, before, sp.Limit)
	if err != nil {
		return paging.List[Health]{}, err
	}
	found := paging.Cut(g.cursors, c.Workspace(), kind, rows, sp.Limit, func(e store.LogEntry) string { return strconv.FormatInt(e.Position, 10) })
	list := paging.List[Health]{Next: found.Next}
	for _, e := range found.Data {
		list.Data = append(list.Data, healthIn(e))
	}
	return list, nil
}

// healthIn reads an event's body, of which nothing may be left.
func healthIn(e store.LogEntry) Health {
	var body struct {
		Device struct {
			StatusReason string `json:"statusReason"`
			PhoneNumber  string `json:"phoneNumber"`
		} `json:"device"`
	}
	h := Health{Type: e.Type, At: e.At}
	if json.Unmarshal(e.Body, &body) == nil {
		h.Reason, h.Number = body.Device.StatusReason, body.Device.PhoneNumber
	}
	return h
}
