package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// Decide lets decision change the state of a device and returns the result. decision
// receives the current device within the transaction, and whether the device has one of the
// current plan's slots; see [slotHolders]. It may change the status, its reason and the
// desired state, and returns the type of the event that reports the change, "" for no event.
// It may be called more than once; when it returns an error, the device stays as it was.
//
// Single writer: change, count.
func (s Devices) Decide(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, at postern.Time,
	decision func(d *postern.Device, slot bool) (postern.EventType, error), acts ...Act,
) (d postern.Device, err error) {
	err = s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		if d, err = readDevice(t, ws, id); err != nil {
			return err
		}
		slot, err := hasSlot(t, ws, id)
		if err != nil {
			return err
		}
		before := d
		event, err := decision(&d, slot)
		if err != nil || d.Status == before.Status && d.StatusReason == before.StatusReason &&
			d.Desired == before.Desired {
			return err
		}
		if err := RecordActs(t, acts); err != nil {
			return err
		}
		return setDeviceState(t, d, event, at)
	}))
	return d, err
}

// setDeviceState writes a device's new state and its event. A device that is allowed to connect again
// starts without crashes.
func setDeviceState(t *db.Tx, d postern.Device, event postern.EventType, at postern.Time) error {
	t.Wake(DeviceChanged, string(d.ID))
	err := changeDevice(t, `UPDATE device SET status = $3, status_reason = $4, desired = $5, turn = turn + 1,
		crashes = CASE WHEN $5 = 'connect' THEN 0 ELSE crashes END,
		down_at = CASE WHEN $5 <> 'connect' THEN 0 WHEN down_at = 0 THEN $6 ELSE down_at END
		WHERE workspace_id = $1 AND id = $2`, d.WorkspaceID, d.ID, d.Status, d.StatusReason, d.Desired, at)
	if err != nil || event == "" {
		return err
	}
	e, err := d.Event(event)
	if err != nil {
		return err
	}
	return recordEvent(t, e, at)
}

// countSlots returns how many devices the workspace's current plan allows.
func countSlots(t *db.Tx, ws postern.WorkspaceID) (int, error) {
	w, err := ReadWorkspace(t, ws)
	if err != nil {
		return 0, err
	}
	plan, _ := w.Entitlement()
	return plan.Devices, nil
}

// PlanLimit is the status reason of a device that is paused because it is beyond the plan's
// number of devices.
const PlanLimit = "plan-limit"

// slotHolders selects the devices that occupy a slot of the plan, in the order in which they
// have it: those whose status is one of slotStates, paused ones included, by the time of
// their link and then the link attempts. The plan's slots belong to the first of them; the
// others are beyond the limit. A new link attempt is the last, so it needs a free slot.
const slotHolders = `SELECT ` + engineColumns + ` FROM device WHERE workspace_id = $1 AND deleted_at = 0
	AND status IN ` + slotStates + `
	ORDER BY CASE status WHEN 'linking' THEN 1 ELSE 0 END, linked_at, id`

// readHolders returns the slotHolders of a workspace.
func readHolders(ws postern.WorkspaceID,
	rows func(query string, args []any, scan func(*sql.Rows) error) error,
) (list []postern.Device, err error) {
	err = rows(slotHolders, []any{ws}, func(r *sql.Rows) error {
		d, err := scanEngineDevice(r)
		list = append(list, d)
		return err
	})
	return list, err
}

// hasSlot reports whether one of the plan's slots belongs to a device.
func hasSlot(t *db.Tx, ws postern.WorkspaceID, id postern.DeviceID) (bool, error) {
	list, err := readHolders(ws, t.Rows)
	if err != nil {
		return false, err
	}
	slots, err := countSlots(t, ws)
	within := list[:min(slots, len(list))]
	return slices.ContainsFunc(within, func(d postern.Device) bool { return d.ID == id }), err
}

// enforceDeviceLimit pauses the slotHolders beyond the workspace's limit, and resumes those
// that are paused for that reason and within the limit again. A device that its owner has
// paused stays as it is.
//
// Single writer: count.
func enforceDeviceLimit(t *db.Tx, ws postern.Workspace, at postern.Time) error {
	plan, _ := ws.Entitlement()
	list, err := readHolders(ws.ID, t.Rows)
	for i, d := range list {
		if err == nil {
			err = enforceOnDevice(t, d, i < plan.Devices, at)
		}
	}
	return err
}

// BeyondLimit returns the devices that would be paused, or whose link attempt would end, if
// the workspace had another limit of devices.
func (s Devices) BeyondLimit(ctx context.Context, ws postern.WorkspaceID,
	devices int,
) (beyond []postern.Device, err error) {
	list, err := readHolders(ws, func(query string, args []any, scan func(*sql.Rows) error) error {
		return s.db.Rows(ctx, query, args, scan)
	})
	beyond = list[max(0, min(devices, len(list))):]
	return slices.DeleteFunc(beyond, func(d postern.Device) bool { return d.Status == postern.Paused }), err
}

func enforceOnDevice(t *db.Tx, d postern.Device, within bool, at postern.Time) error {
	switch {
	case within && d.Status == postern.Paused && d.StatusReason == PlanLimit:
		d.Status, d.StatusReason, d.Desired = postern.Connecting, "", postern.WantConnect
		return setDeviceState(t, d, "", at)
	case within || d.Status == postern.Paused:
		return nil
	case d.Status == postern.Linking:
		if err := failLink(t, d.WorkspaceID, d.ID, PlanLimit, at); err != nil {
			return err
		}
		d.Status, d.StatusReason, d.Desired = postern.Unlinked, PlanLimit, d.WithoutLink()
		return setDeviceState(t, d, postern.DeviceLinking, at)
	}
	d.Status, d.StatusReason, d.Desired = postern.Paused, PlanLimit, postern.WantIdle
	return setDeviceState(t, d, postern.DevicePaused, at)
}

// Cap is a limit of what a workspace holds, by its current plan.
type Cap struct {
	Limit  func(postern.Caps) int
	Count  string // the query for what there is; $1 is the workspace
	What   string // "the plan allows 5 devices"
	Remedy string // how to get below the limit
}

// Check returns a ResourceLimit error when no more may be created. more are further arguments of the query.
//
// Single writer: count.
func (c Cap) Check(t *db.Tx, ws postern.WorkspaceID, more ...any) error {
	w, err := ReadWorkspace(t, ws)
	if err != nil {
		return err
	}
	plan, _ := w.Entitlement()
	limit, have := c.Limit(plan.Caps), 0
	err = t.Row(c.Count, append([]any{ws}, more...), &have)
	if err == nil && have >= limit {
		err = postern.Errorf(postern.ResourceLimit, "the plan allows %d %s; %s or change the plan", limit, c.What, c.Remedy)
	}
	return err
}

func deviceCap() Cap {
	return Cap{
		func(c postern.Caps) int { return c.Devices },
		`SELECT count(*) FROM device WHERE workspace_id = $1 AND deleted_at = 0`,
		"devices, linked or not", "delete one",
	}
}

// keyCap counts the keys that work at the time $2. A rotation may double them, because the
// old key keeps working for a while.
func keyCap(rotates bool) Cap {
	return Cap{
		func(c postern.Caps) int {
			if rotates {
				return 2 * c.Keys
			}
			return c.Keys
		},
		`SELECT count(*) FROM api_key WHERE ` + worksAt,
		"API keys", "revoke one",
	}
}

// newKeyCap counts the keys created since the time $2, whether they work or not: all of them
// are stored.
func newKeyCap() Cap {
	return Cap{
		func(c postern.Caps) int { return 4 * c.Keys },
		`SELECT count(*) FROM api_key WHERE workspace_id = $1 AND created_at > $2`, "new API keys a day", "wait a day",
	}
}

// checkKeys returns an error when no more keys may be created at a time.
func checkKeys(t *db.Tx, ws postern.WorkspaceID, at postern.Time, rotates bool) error {
	if err := keyCap(rotates).Check(t, ws, at); err != nil {
		return err
	}
	return newKeyCap().Check(t, ws, at.Add(-24*time.Hour))
}

// counter counts the units of a month for one device.
type counter struct {
	account

	device postern.DeviceID
}

var (
	addUsage = db.NewStatement("workspace_id, month, messages",
		`INSERT INTO usage AS have (workspace_id, month, messages) @values
		ON CONFLICT (workspace_id, month) DO UPDATE SET messages = have.messages + excluded.messages`)
	takeUsage = db.NewStatement("workspace, of_month, units",
		`UPDATE usage SET messages = CASE WHEN messages > @units THEN messages - @units ELSE 0 END [FROM @rows]
		WHERE workspace_id = @workspace AND month = @of_month`)
	addDeviceUsage = db.NewStatement("workspace_id, month, device_id, messages",
		`INSERT INTO device_usage AS have (workspace_id, month, device_id, messages) @values
		ON CONFLICT (workspace_id, month, device_id) DO UPDATE SET messages = have.messages + excluded.messages`)
)

// spend takes units of the months' quotas, which were checked in this transaction.
func spend(t *db.Tx, units map[counter]int) error { return countUnits(t, addUsage, units, 1) }

// refund returns the unit of each message to the month in which it was accepted.
func refund(t *db.Tx, messages []postern.Message) error {
	units := map[counter]int{}
	for _, m := range messages {
		units[counter{account{m.WorkspaceID, MonthOf(m.CreatedAt)}, m.DeviceID}]++
	}
	return countUnits(t, takeUsage, units, -1)
}

// countUnits adds units to the workspaces' months, or takes them off, with the statement
// for that, and counts them for the devices.
func countUnits(t *db.Tx, change *db.Statement, units map[counter]int, sign int) error {
	total := make(map[account]int, 1)
	devices := make([][]any, 0, len(units))
	for c, n := range units {
		total[c.account] += n
		devices = append(devices, []any{c.ws, c.month, c.device, sign * n})
	}
	months := make([][]any, 0, len(total))
	for a, n := range total {
		months = append(months, []any{a.ws, a.month, n})
	}
	if err := t.Each(change, months); err != nil {
		return err
	}
	return t.Each(addDeviceUsage, devices)
}

// Messages returns how many units of a month's quota are used.
func (s Usage) Messages(ctx context.Context, ws postern.WorkspaceID, month string) (n int, err error) {
	err = s.db.Row(ctx, `SELECT messages FROM usage WHERE workspace_id = $1 AND month = $2`, []any{ws, month}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// EverSent reports whether a unit of any month's quota was used.
func (s Usage) EverSent(ctx context.Context, ws postern.WorkspaceID) (bool, error) {
	return s.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM usage WHERE workspace_id = $1 AND messages > 0
		LIMIT 1) AS months`, ws)()
}

// MessagesBy returns the part of Messages that some devices have used.
func (s Usage) MessagesBy(ctx context.Context, ws postern.WorkspaceID, month string,
	devices []postern.DeviceID,
) (n int, err error) {
	err = s.db.Row(ctx, `SELECT coalesce(sum(messages), 0) FROM device_usage WHERE workspace_id = $1 AND month = $2
		AND device_id IN `+s.db.InList(3), []any{ws, month, textList(devices)}, &n)
	return n, err
}

// Slots returns how many devices occupy a slot of the plan; see [slotHolders]. When only is not nil, it counts
// only those devices.
func (s Usage) Slots(ctx context.Context, ws postern.WorkspaceID, only []postern.DeviceID) (n int, err error) {
	err = s.db.Row(ctx, slotsUsed+` AND ($2 = 'null' OR id IN `+s.db.InList(2)+`)`, []any{ws, textList(only)}, &n)
	return n, err
}

// Endpoints returns the number of webhook endpoints.
func (s Usage) Endpoints(ctx context.Context, ws postern.WorkspaceID) (n int, err error) {
	err = s.db.Row(ctx, `SELECT count(*) FROM endpoint WHERE workspace_id = $1`, []any{ws}, &n)
	return n, err
}

// MonthOf returns the UTC calendar month of an instant, such as 2026-11.
func MonthOf(t postern.Time) string { return t.Std().Format("2006-01") }

// MonthEnd returns the end of a month named by MonthOf.
func MonthEnd(month string) postern.Time {
	t, err := time.Parse("2006-01", month)
	if err != nil {
		return 0
	}
	return postern.TimeOf(t.AddDate(0, 1, 0))
}
