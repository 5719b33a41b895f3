package store

import (
	"postern/internal/db"
	"postern/internal/postern"
)

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
	if _, err := t.Each(change, months); err != nil {
		return err
	}
	_, err := t.Each(addDeviceUsage, devices)
	return err
}
