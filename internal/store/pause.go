package store

import (
	"context"

	"postern/internal/db"
	"postern/internal/postern"
)

// Decide lets the owner change a device's state by what it is in the
// transaction. The decision gets the device and how many slots of the plan, as
// that is by then, are free of others that are not paused; it changes status,
// reason and what is desired, and names the event that this makes, "" for none.
// It may be asked twice; its error leaves the device as it was.
func (s Devices) Decide(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, at postern.Time, decision func(d *postern.Device, free int) (postern.EventType, error), acts ...Act) (d postern.Device, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if d, err = readDevice(t, ws, id); err != nil {
			return err
		}
		var others int
		if err := t.Row(slotsUsed+` AND status <> 'paused' AND id <> $2`, []any{ws, id}, &others); err != nil {
			return err
		}
		slots, err := countSlots(t, ws)
		if err != nil {
			return err
		}
		before := d
		event, err := decision(&d, slots-others)
		if err != nil || d.Status == before.Status && d.StatusReason == before.StatusReason && d.Desired == before.Desired {
			return err
		}
		if err := recordActs(t, acts); err != nil {
			return err
		}
		return setDeviceState(t, d, event, at)
	}))
	return d, err
}

// setState writes what was decided about a device, and its event.
func setDeviceState(t *db.Tx, d postern.Device, event postern.EventType, at postern.Time) error {
	t.Wake(DeviceChanged, string(d.ID))
	err := changeDevice(t, `UPDATE device SET status = $3, status_reason = $4, desired = $5, turn = turn + 1 WHERE workspace_id = $1 AND id = $2`, d.WorkspaceID, d.ID, d.Status, d.StatusReason, d.Desired)
	if err != nil || event == "" {
		return err
	}
	e, err := d.Event(event)
	if err != nil {
		return err
	}
	return recordEvent(t, e, at)
}

// slots is how many devices the workspace's plan allows now.
func countSlots(t *db.Tx, ws postern.WorkspaceID) (int, error) {
	w, err := readWorkspace(t, ws)
	if err != nil {
		return 0, err
	}
	plan, _ := w.Entitlement()
	return plan.Devices, nil
}
