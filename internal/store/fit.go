package store

import (
	"context"
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
)

// PlanLimit is why a device is paused that is beyond the plan's number.
const PlanLimit = "plan-limit"

// fitDevices pauses the devices that were linked last and are beyond the
// workspace's number, and resumes those that such a pause holds and the number
// covers again. An attempt to link is younger than any link. What its owner has
// paused stays so and is not counted, as when a device is resumed.
func enforceDeviceLimit(t *db.Tx, ws postern.Workspace, at postern.Time) error {
	plan, _ := ws.Entitlement()
	var list []postern.Device
	err := t.Rows(slotHolders, []any{ws.ID}, func(r *sql.Rows) error {
		d, err := scanEngineDevice(r)
		list = append(list, d)
		return err
	})
	if err != nil {
		return err
	}
	return eachPlace(list, plan.Devices, func(d postern.Device, within bool) error { return enforceOnDevice(t, d, within, at) })
}

// slotHolders are the devices that hold a slot, linked ones first.
const slotHolders = `SELECT ` + engineColumns + ` FROM device WHERE workspace_id = $1 AND deleted_at = 0 AND status IN ` + slotStates + `
	ORDER BY CASE status WHEN 'linking' THEN 1 ELSE 0 END, linked_at, id`

// eachPlace tells of each device that takes a place whether a number covers it.
func eachPlace(list []postern.Device, room int, do func(d postern.Device, within bool) error) error {
	for _, d := range list {
		if held := d.Status == postern.Paused && d.StatusReason != PlanLimit; held {
			continue // by its owner: it takes no place until it is resumed
		}
		if err := do(d, room > 0); err != nil {
			return err
		}
		room--
	}
	return nil
}

// BeyondLimit lists the devices that would be paused, or whose attempt to link would end,
// if a workspace had another number of devices.
func (s Devices) BeyondLimit(ctx context.Context, ws postern.WorkspaceID, devices int) (beyond []postern.Device, err error) {
	var list []postern.Device
	err = s.db.Rows(ctx, slotHolders, []any{ws}, func(r *sql.Rows) error {
		d, err := scanEngineDevice(r)
		list = append(list, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = eachPlace(list, devices, func(d postern.Device, within bool) error {
		if !within && d.Status != postern.Paused {
			beyond = append(beyond, d)
		}
		return nil
	})
	return beyond, err
}

func enforceOnDevice(t *db.Tx, d postern.Device, within bool, at postern.Time) error {
	switch {
	case within && d.Status == postern.Paused:
		d.Status, d.StatusReason, d.Desired = postern.Connecting, "", postern.WantConnect
		return setDeviceState(t, d, "", at)
	case within || d.Status == postern.Paused:
		return nil
	case d.Status == postern.Linking:
		if err := endOpenLink(t, d.ID, postern.LinkFailed, PlanLimit, at); err != nil {
			return err
		}
		d.Status, d.StatusReason, d.Desired = postern.Unlinked, PlanLimit, d.WithoutLink()
		return setDeviceState(t, d, "", at)
	}
	d.Status, d.StatusReason, d.Desired = postern.Paused, PlanLimit, postern.WantIdle
	return setDeviceState(t, d, postern.DevicePaused, at)
}
