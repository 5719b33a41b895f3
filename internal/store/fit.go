package store

import (
	"database/sql"

	"postern/internal/postern"
)

// PlanLimit is why a device is paused that is beyond the plan's number.
const PlanLimit = "plan-limit"

// fitDevices pauses the devices that were linked last and are beyond the
// workspace's number, and resumes those that such a pause holds and the number
// covers again. An attempt to link is younger than any link. What its owner has
// paused stays so and is not counted, as when a device is resumed.
func (t *tx) fitDevices(ws postern.Workspace, at postern.Time) error {
	plan, _ := ws.Entitlement()
	var list []postern.Device
	err := t.rows(`SELECT `+engineColumns+` FROM device WHERE workspace_id = $1 AND deleted_at = 0 AND status IN `+slotStates+`
		ORDER BY CASE status WHEN 'linking' THEN 1 ELSE 0 END, linked_at, id`, []any{ws.ID}, func(r *sql.Rows) error {
		d, err := scanEngineDevice(r)
		list = append(list, d)
		return err
	})
	room := plan.Devices
	for i := 0; err == nil && i < len(list); i++ {
		if held := list[i].Status == postern.Paused && list[i].StatusReason != PlanLimit; held {
			continue // by its owner: it takes no place until it is resumed
		}
		err = t.fitDevice(list[i], room > 0, at)
		room--
	}
	return err
}

func (t *tx) fitDevice(d postern.Device, within bool, at postern.Time) error {
	switch {
	case within && d.Status == postern.Paused:
		d.Status, d.StatusReason, d.Desired = postern.Connecting, "", postern.WantConnect
		return t.setState(d, "", at)
	case within || d.Status == postern.Paused:
		return nil
	case d.Status == postern.Linking:
		if err := endOpenLink(t, d.ID, postern.LinkFailed, PlanLimit, at); err != nil {
			return err
		}
		d.Status, d.StatusReason, d.Desired = postern.Unlinked, PlanLimit, d.WithoutLink()
		return t.setState(d, "", at)
	}
	d.Status, d.StatusReason, d.Desired = postern.Paused, PlanLimit, postern.WantIdle
	return t.setState(d, postern.DevicePaused, at)
}
