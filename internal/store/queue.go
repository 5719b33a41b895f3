package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// QueueMessage accepts an outbound message: it spends a unit of the month's quota, writes
// the row and wakes the device's sender, all or nothing.
type QueueMessage struct {
	Message          postern.Message
	Month            string // such as 2026-11
	Quota            int
	WhenDisconnected string // "fail" or "queue"
	Once             *Once
	Acts             []Act
}

// Queue accepts an outbound message.
func (s Messages) Queue(ctx context.Context, o QueueMessage) error { return write(ctx, s.core, o) }

// About lets workspaces take turns.
func (o QueueMessage) About() db.About {
	return db.About{Workspace: string(o.Message.WorkspaceID), Urgency: db.Fair}
}

// WriteAll first reads what may refuse a message, then writes the others.
func (QueueMessage) WriteAll(t *db.Tx, list []db.Pending[QueueMessage]) error {
	list, err := refuseRepeated(t, list)
	if err != nil {
		return err
	}
	if list, err = refuseUnacceptable(t, list); err != nil || len(list) == 0 {
		return err
	}
	return accept(t, list)
}

// refuseRepeated refuses messages whose idempotency key was used before.
func refuseRepeated(t *db.Tx, list []db.Pending[QueueMessage]) (rest []db.Pending[QueueMessage], err error) {
	keys := oncesOf(list)
	if len(keys) == 0 {
		return list, nil
	}
	used, err := usedKeys(t, keys)
	if err != nil || len(used) == 0 {
		return list, err
	}
	for _, p := range list {
		if o := p.Value.Once; o != nil && used[o.place()] {
			p.Refuse(ErrAlreadyDone)
		} else {
			rest = append(rest, p)
		}
	}
	return rest, nil
}

func oncesOf(list []db.Pending[QueueMessage]) (keys []*Once) {
	for _, p := range list {
		if p.Value.Once != nil {
			keys = append(keys, p.Value.Once)
		}
	}
	return keys
}

// account is what a month's quota is counted in.
type account struct {
	ws    postern.WorkspaceID
	month string
}

func (o QueueMessage) account() account { return account{o.Message.WorkspaceID, o.Month} }

// room is what a message needs to be accepted.
type room struct {
	status postern.Status // of its device
	used   int            // of the month's quota
}

// refuseUnacceptable refuses messages that the device's state or the quota does not allow.
// Nobody else writes in the meantime; see singlewriter.go.
func refuseUnacceptable(t *db.Tx, list []db.Pending[QueueMessage]) (rest []db.Pending[QueueMessage], err error) {
	rooms, err := readRooms(t, list)
	if err != nil {
		return nil, err
	}
	accepted := make(map[account]int, 1)
	for _, p := range list {
		o := p.Value
		device, known := rooms[o.Message.DeviceID]
		device.used += accepted[o.account()]
		if err := o.check(device, known); err != nil {
			p.Refuse(err)
			continue
		}
		accepted[o.account()]++
		rest = append(rest, p)
	}
	return rest, nil
}

var readRoom = db.NewStatement("device, workspace, month",
	`SELECT d.id, d.status, coalesce(m.messages, 0) FROM [@rows CROSS JOIN] device d
	LEFT JOIN usage m ON m.workspace_id = d.workspace_id AND m.month = @month
	WHERE d.workspace_id = @workspace AND d.id = @device AND d.deleted_at = 0`)

func readRooms(t *db.Tx, list []db.Pending[QueueMessage]) (map[postern.DeviceID]room, error) {
	rows := make([][]any, 0, len(list))
	asked := make(map[postern.DeviceID]bool, 1)
	for _, p := range list {
		if m := p.Value.Message; !asked[m.DeviceID] {
			asked[m.DeviceID] = true
			rows = append(rows, []any{m.DeviceID, m.WorkspaceID, p.Value.Month})
		}
	}
	rooms := make(map[postern.DeviceID]room, len(rows))
	err := t.EachRow(readRoom, rows, func(r *sql.Rows) error {
		var id postern.DeviceID
		var one room
		err := r.Scan(&id, &one.status, &one.used)
		rooms[id] = one
		return err
	})
	return rooms, err
}

// check tells why a message is refused; nil when it is not.
func (o QueueMessage) check(device room, known bool) error {
	waits := device.status.HoldsSlot() && device.status != postern.Linking && o.WhenDisconnected == "queue"
	switch {
	case !known:
		return postern.Errorf(postern.NotFound, "there is no such device")
	case device.status != postern.Connected && !waits:
		return postern.Errorf(postern.DeviceNotConnected,
			"the device is %s; wait until it is connected, or send with whenDisconnected set to queue", device.status)
	case device.used >= o.Quota:
		return postern.Errorf(postern.QuotaExhausted,
			"the plan's %d messages of this month are used up; the month ends at %s", o.Quota, MonthEnd(o.Month))
	}
	return nil
}

// accept writes messages that nothing refuses.
func accept(t *db.Tx, list []db.Pending[QueueMessage]) error {
	units, rows := make(map[counter]int, 1), make([][]any, len(list))
	for i, p := range list {
		o := &p.Value
		units[counter{o.account(), o.Message.DeviceID}]++
		rows[i] = newMessage(o.Message, "", false)
		if err := recordActs(t, o.Acts); err != nil {
			return err
		}
	}
	if err := claim(t, oncesOf(list)); err != nil {
		return err
	}
	if err := spend(t, units); err != nil {
		return err
	}
	fresh, err := insertMessages(t, rows)
	if err == nil && len(fresh) != len(list) {
		err = errors.New("a network id was chosen twice")
	}
	for i := range list {
		m := &list[i].Value.Message
		t.Note(MessageMoved{m, ""})
		t.Wake(OutboundQueued, string(m.DeviceID))
	}
	return err
}
