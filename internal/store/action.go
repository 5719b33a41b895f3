package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
)

// stateColumn is the column state: what actions have made of a message, as JSON.
type stateColumn struct{ of *postern.State }

func (c stateColumn) Scan(src any) error {
	*c.of = postern.State{}
	if src == "" {
		return nil
	}
	return jsonColumn{c.of}.Scan(src)
}

// QueueAction is an action on a message that a caller requests. It waits like a message of
// its chat, costs no quota, and is sent even if the device is disconnected now.
type QueueAction struct {
	Action postern.Message // About names the message
	Acts   []Act
}

// QueueAction accepts an action. It returns an error if the device has no link.
func (s Messages) QueueAction(ctx context.Context, o QueueAction) error {
	a := &o.Action
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var status postern.Status
		err := t.Row(`SELECT status FROM device WHERE workspace_id = $1 AND id = $2 AND deleted_at = 0`,
			[]any{a.WorkspaceID, a.DeviceID}, &status)
		if errors.Is(err, sql.ErrNoRows) {
			return postern.Errorf(postern.NotFound, "there is no such device")
		}
		if err != nil {
			return err
		}
		if !status.HoldsSlot() || status == postern.Linking {
			return postern.Errorf(postern.DeviceNotConnected, "the device is %s; %s", status, toConnect(status))
		}
		if err := recordActs(t, o.Acts); err != nil {
			return err
		}
		lanes, err := joinLanes(t, []postern.Message{*a})
		if err != nil {
			return err
		}
		_, err = t.Each(addMessages, [][]any{newMessage(*a, lanes.of(*a), "", false)})
		wakeSender(t, a.DeviceID, lanes.of(*a))
		return errors.Join(err, accepted(t, *a))
	}))
}

// act is an action that has its effect now: it arrived, or the network has taken it. Its
// event comes after as many others as before says.
type act struct {
	postern.Message
	now    postern.Time
	before int
}

var readTargets = db.NewStatement("device, network, chat",
	`SELECT `+messageColumns+` FROM message [, @rows] WHERE device_id = @device AND network_id = @network
		AND chat_id = @chat AND about = '' AND `+current("message"))

var saveTargets = db.NewStatement("message, new_state, new_body",
	`UPDATE message SET state = @new_state, body = @new_body [FROM @rows] WHERE id = @message`)

// target identifies the message that an action is about.
type target struct {
	device    postern.DeviceID
	networkID string
	chat      string
}

// applyActs changes the messages that actions are about, and inserts the events that report
// it. An action on a message that we do not have, and one without an effect, has no event.
//
// Single writer: change. saveTargets does not check the state that readTargets has read.
func applyActs(t *db.Tx, acts []act, events []eventAt) ([]eventAt, error) {
	if len(acts) == 0 {
		return events, nil
	}
	targets, err := targetsOf(t, acts)
	if err != nil {
		return nil, err
	}
	var changed []*postern.Message
	for i, a := range acts {
		m := targets[a.target()]
		if m == nil {
			continue
		}
		kind, ok := m.Apply(a.Message)
		if !ok {
			continue
		}
		e, err := m.ActionEvent(kind, a.Message)
		if err != nil {
			return nil, err
		}
		events = slices.Insert(events, min(a.before+len(changed), len(events)), eventAt{e, acts[i].now})
		changed = append(changed, m)
	}
	return events, saveActs(t, changed)
}

func (a act) target() target { return target{a.DeviceID, db.Clean(a.About), a.ChatID} }

func targetsOf(t *db.Tx, acts []act) (map[target]*postern.Message, error) {
	rows := make([][]any, len(acts))
	for i, a := range acts {
		rows[i] = []any{a.DeviceID, a.About, a.ChatID}
	}
	targets := make(map[target]*postern.Message, len(acts))
	err := t.EachRow(readTargets, rows, func(r *sql.Rows) error {
		m, err := scanMessage(r)
		if key := (target{m.DeviceID, m.NetworkID, m.ChatID}); targets[key] == nil {
			targets[key] = &m
		}
		return err
	})
	return targets, err
}

func saveActs(t *db.Tx, changed []*postern.Message) error {
	if forgetsActions() {
		return nil
	}
	rows := make([][]any, 0, len(changed))
	for i, m := range changed {
		if slices.Index(changed, m) == i {
			rows = append(rows, []any{m.ID, asJSON(m.State), m.Content.Text})
		}
	}
	_, err := t.Each(saveTargets, rows)
	return err
}
