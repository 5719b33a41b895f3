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

const maxProgress = 200 // attempts and actions that are read of the way of a message

// MostReported is how many events about a message are read, the newest, and how many deliveries of these.
const MostReported = 100

// QueueAction is an action on a message that a caller requests. It waits like a message of
// its chat, costs no quota, and is sent even if the device is disconnected now.
type QueueAction struct {
	Action postern.Message // About names the message
	Acts   []Act
}

// QueueAction accepts an action. It returns an error if the device has no link. Messages up to one that was read or
// played count as read.
func (s Messages) QueueAction(ctx context.Context, o QueueAction) error {
	a := &o.Action
	return s.db.Do(ctx, db.FuncOf(string(a.WorkspaceID), func(t *db.Tx) error {
		status, err := statusFor(t, *a)
		if err != nil {
			return err
		}
		if !status.HoldsSlot() || status == postern.Linking {
			return postern.Errorf(postern.DeviceNotConnected, "the device is %s; %s", status, toConnect(status))
		}
		if a.Content.Kind == postern.KindRead || a.Content.Kind == postern.KindPlayed {
			err = readUpToMessages(t, chatKey{a.DeviceID, a.ChatID}, []string{a.About})
		}
		return errors.Join(err, addAction(t, *a, o.Acts))
	}))
}

func statusFor(t *db.Tx, a postern.Message) (status postern.Status, err error) {
	err = t.Row(`SELECT status FROM device WHERE workspace_id = $1 AND id = $2 AND deleted_at = 0`,
		[]any{a.WorkspaceID, a.DeviceID}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		err = postern.Errorf(postern.NotFound, "there is no such device")
	}
	return status, err
}

func addAction(t *db.Tx, a postern.Message, acts []Act) error {
	if err := RecordActs(t, acts); err != nil {
		return err
	}
	lanes, err := joinLanes(t, []postern.Message{a})
	if err != nil {
		return err
	}
	err = t.Each(addMessages, [][]any{newMessage(a, lanes.of(a), "", false)})
	wakeSender(t, a.DeviceID, lanes.of(a))
	return errors.Join(err, accepted(t, a))
}

// QueueChatRead marks all messages of a chat as read, and queues an action that tells their senders. The action is
// that of [QueueAction], without the message that it is about and without content. It does nothing if nothing is
// unread, and returns an error unless the device is connected.
func (s Messages) QueueChatRead(ctx context.Context, o QueueAction) error {
	a := &o.Action
	return s.db.Do(ctx, db.FuncOf(string(a.WorkspaceID), func(t *db.Tx) error {
		status, err := statusFor(t, *a)
		if err == nil && status != postern.Connected {
			err = postern.Errorf(postern.DeviceNotConnected, "the device is %s; wait until it is connected", status)
		}
		if err != nil {
			return err
		}
		n, marks, err := unreadIn(t, chatKey{a.DeviceID, a.ChatID})
		if err != nil || len(marks) == 0 {
			return err
		}
		if err := readUpTo(t, chatKey{a.DeviceID, a.ChatID}, n); err != nil {
			return err
		}
		for part := range slices.Chunk(marks, postern.MaxReadMarks) {
			a.About, a.Content = part[0].NetworkID, postern.ReadOf(part[1:])
			if err := addAction(t, *a, o.Acts); err != nil {
				return err
			}
			a.ID, a.NetworkID, o.Acts = postern.NewMessageID(), postern.NewNetworkID(), nil
		}
		return nil
	}))
}

// mostRead is how many messages of a chat are marked as read at once. The senders of older ones are not told.
const mostRead = 20 * postern.MaxReadMarks

// unreadIn returns the newest unread messages of a chat, the newest first, and the number of the first.
func unreadIn(t *db.Tx, k chatKey) (newest int64, marks []postern.ReadMark, err error) {
	err = t.Rows(`SELECT m.n, m.network_id, m.from_number, m.from_lid FROM chat c JOIN message m
		ON m.device_id = c.device_id AND m.chat_id = c.chat_id AND m.n > c.read_to AND `+onNetwork("m")+`
		WHERE c.device_id = $1 AND c.chat_id = $2 AND `+current("m")+` AND `+unreadKinds("m.")+` AND NOT `+erased("m")+`
		ORDER BY m.n DESC LIMIT $3 + 0`, []any{k.device, k.chat, mostRead}, func(r *sql.Rows) error {
		var n int64
		var number postern.Maybe
		var lid string
		var mark postern.ReadMark
		err := r.Scan(&n, &mark.NetworkID, &number, &lid)
		if mark.Author = string(number); lid != "" {
			mark.Author = postern.ChatOfLID(lid)
		}
		newest, marks = max(newest, n), append(marks, mark)
		return err
	})
	return newest, marks, err
}

// readUpToMessages marks the messages of a chat as read up to the newest of some, by their network ids. Messages of the
// history do not count: their numbers are higher than those of newer messages.
func readUpToMessages(t *db.Tx, k chatKey, networkIDs []string) error {
	var n int64
	err := t.Row(`SELECT coalesce(max(n + 0), 0) FROM message WHERE device_id = $1 AND chat_id || '' = $2 AND about = ''
		AND history = 0 AND network_id IN `+t.InList(3), []any{k.device, k.chat, textList(networkIDs)}, &n)
	if err != nil || n == 0 {
		return err
	}
	return readUpTo(t, k, n)
}

// ReadElsewhere is what the account has read on its phone or on another companion: up to the newest of some messages.
type ReadElsewhere struct {
	DeviceID   postern.DeviceID
	ChatID     string
	NetworkIDs []string
}

// ReadElsewhere marks messages as read, and tells nobody.
func (s Messages) ReadElsewhere(ctx context.Context, o ReadElsewhere) error {
	return s.db.Do(ctx, db.Fenced(db.Func(o.apply)))
}

func (o ReadElsewhere) apply(t *db.Tx) error {
	if len(o.NetworkIDs) == 0 {
		return nil
	}
	return readUpToMessages(t, chatKey{o.DeviceID, o.ChatID}, o.NetworkIDs)
}

// ReadUntil marks the messages of a chat as read that were sent until a time, and tells nobody.
func ReadUntil(t *db.Tx, device postern.DeviceID, chat string, until postern.Time) error {
	if until == 0 {
		return nil
	}
	var n int64
	err := t.Row(`SELECT coalesce(max(m.n), 0) FROM chat c JOIN message m ON m.device_id = c.device_id
		AND m.chat_id = c.chat_id AND m.n > c.read_to AND `+onNetwork("m")+`
		WHERE c.device_id = $1 AND c.chat_id = $2 AND m.sent_at <= $3 AND `+unreadKinds("m."), []any{device, chat, until}, &n)
	if err != nil || n == 0 {
		return err
	}
	return readUpTo(t, chatKey{device, chat}, n)
}

// IsActed reports whether an action of a kind on a message was requested here at a time.
func (s Messages) IsActed(
	ctx context.Context, device postern.DeviceID, chat, about string, kind postern.Kind, at postern.Time,
) (bool, error) {
	return s.exists(ctx, `SELECT count(*) FROM message WHERE device_id = $1 AND about = $2 AND about <> ''
		AND chat_id = $3 AND type = $4 AND source = 'api' AND created_at = $5`, device, about, chat, kind, at)()
}

// act is an action that has its effect now: it arrived, or the network has taken it. Its
// event comes after as many others as before says.
type act struct {
	postern.Message
	now    postern.Time
	before int
}

// readTargets finds a message by its id, and must not use an index of the chat.
var readTargets = db.NewStatement("device, network, chat",
	`SELECT `+messageColumns+` FROM message [, @rows] WHERE device_id = @device AND network_id = @network
		AND chat_id || '' = @chat AND about = '' AND `+current("message"))

// joinedChat selects the other chat with the person of a chat while messages move from one to the other. What waits in
// the queue stays in its chat until it has ended; what it is about has moved before.
const joinedChat = `SELECT CASE WHEN from_chat = $2 THEN to_chat ELSE from_chat END
	FROM chat_join WHERE device_id = $1 AND $2 IN (from_chat, to_chat) LIMIT 1`

var joinedChats = db.NewStatement("device, chat",
	`SELECT @device, @chat, CASE WHEN from_chat = @chat THEN to_chat ELSE from_chat END
		FROM chat_join [, @rows] WHERE device_id = @device AND @chat IN (from_chat, to_chat)`)

var saveTargets = db.NewStatement("message, new_state, new_body, new_extra",
	`UPDATE message SET state = @new_state, body = @new_body, extra = @new_extra [FROM @rows] WHERE id = @message`)

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
		kind, ok, err := apply(t, m, a.Message)
		if err != nil {
			return nil, err
		}
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

// apply changes a message by an action on it.
func apply(t *db.Tx, m *postern.Message, a postern.Message) (kind postern.EventType, ok bool, err error) {
	if !m.Moderates(a) {
		kind, ok = m.Apply(a)
		return kind, ok, nil
	}
	if ok, err = isAdministrator(t, a); ok {
		kind, ok = m.Moderate(a)
	}
	return kind, ok, err
}

const readMembers = `SELECT summary, participants FROM chat_group WHERE device_id = $1 AND chat_id = $2 AND left_at = 0`

// isAdministrator reports whether the one who acts in a group is known as an administrator of it.
func isAdministrator(t *db.Tx, a postern.Message) (bool, error) {
	var g postern.Group
	err := t.Row(readMembers, []any{a.DeviceID, a.ChatID}, jsonColumn{&g.GroupSummary}, jsonColumn{&g.Participants})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case a.Direction == postern.Outbound:
		return g.Role != postern.GroupMember, err
	}
	return g.IsAdministrator(a.From, a.FromLID), err
}

func (a act) target() target { return target{a.DeviceID, db.Clean(a.About), a.ChatID} }

func targetsOf(t *db.Tx, acts []act) (map[target]*postern.Message, error) {
	wanted := make([]target, len(acts))
	for i, a := range acts {
		wanted[i] = a.target()
	}
	targets := make(map[target]*postern.Message, len(acts))
	if err := findTargets(t, wanted, targets); err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(wanted, func(w target) bool { return targets[w] != nil })
	if len(missing) == 0 {
		return targets, nil
	}
	return targets, findMoved(t, missing, targets)
}

func findTargets(t *db.Tx, wanted []target, targets map[target]*postern.Message) error {
	rows := make([][]any, len(wanted))
	for i, w := range wanted {
		rows[i] = []any{w.device, w.networkID, w.chat}
	}
	return t.EachRow(readTargets, rows, func(r *sql.Rows) error {
		m, err := scanMessage(r)
		if key := (target{m.DeviceID, m.NetworkID, m.ChatID}); targets[key] == nil {
			targets[key] = &m
		}
		return err
	})
}

// findMoved finds targets in the other chats with the same person.
func findMoved(t *db.Tx, missing []target, targets map[target]*postern.Message) error {
	chats, rows := map[chatKey]string{}, make([][]any, len(missing))
	for i, w := range missing {
		rows[i] = []any{w.device, w.chat}
	}
	err := t.EachRow(joinedChats, rows, func(r *sql.Rows) error {
		var of chatKey
		var other string
		err := r.Scan(&of.device, &of.chat, &other)
		chats[of] = other
		return err
	})
	if err != nil || len(chats) == 0 {
		return err
	}
	moved := slices.Clone(missing)
	for i, w := range missing {
		moved[i].chat = chats[chatKey{w.device, w.chat}]
	}
	err = findTargets(t, moved, targets)
	for i, w := range missing {
		targets[w] = targets[moved[i]]
	}
	return err
}

func saveActs(t *db.Tx, changed []*postern.Message) error {
	if forgetsActions() {
		return nil
	}
	rows := make([][]any, 0, len(changed))
	for i, m := range changed {
		if slices.Index(changed, m) == i {
			rows = append(rows, []any{m.ID, asJSON(m.State), m.Content.Text, extraOf(m.Content)})
		}
	}
	return t.Each(saveTargets, rows)
}

const (
	readProgress = `SELECT queued_at, finished_at, attempts, attempted_at, attempt_outcome FROM message WHERE id = $1`
	readSends    = `SELECT number, at, outcome FROM send_attempt WHERE message_id = $1 ORDER BY number LIMIT $2 + 0`
	readActions  = `SELECT ` + messageColumns + `, finished_at FROM message WHERE device_id = $1 AND about = $2
		AND about <> '' AND chat_id = $3 ORDER BY n LIMIT $4 + 0`
	readEvents = `SELECT id, type, created_at FROM event
		WHERE message_id = $1 AND message_id <> '' AND workspace_id = $2 ORDER BY position DESC LIMIT $3 + 0`
	readLastPosts = `SELECT id, endpoint_id, attempts, last_attempt_at, last_duration, last_status, last_reason
		FROM delivery WHERE event_id = $1 ORDER BY n LIMIT $2 + 0`
	readPosts = `SELECT number, at, duration, status, reason FROM attempt WHERE delivery_id = $1 ORDER BY number
		LIMIT $2 + 0`
)

// Progress returns what is known of the way of a message that was found by its workspace. It
// reads at most 200 attempts and actions each, and the posts of 100 deliveries.
func (s Messages) Progress(ctx context.Context, m postern.Message) (p postern.Progress, err error) {
	last := postern.SendAttempt{}
	err = s.db.Row(ctx, readProgress, []any{m.ID}, &p.QueuedAt, &p.FinishedAt, &last.Number, &last.At, &last.Outcome)
	if err != nil {
		return p, err
	}
	err = s.db.Rows(ctx, readSends, []any{m.ID, maxProgress}, func(r *sql.Rows) error {
		var a postern.SendAttempt
		err := r.Scan(&a.Number, &a.At, &a.Outcome)
		p.Attempts = append(p.Attempts, a)
		return err
	})
	if last.Number > 0 {
		p.Attempts = append(p.Attempts, last)
	}
	return p, errors.Join(err, s.readActions(ctx, m, &p), s.readPosts(ctx, m, &p))
}

// Receipts returns up to limit receipts of a message to a group, in the order of their places, from behind one.
func (s Messages) Receipts(
	ctx context.Context, ws postern.WorkspaceID, id postern.MessageID, after string, limit int,
) (list []postern.Receipt, err error) {
	err = s.db.Rows(ctx, `SELECT member, number, delivered_at, read_at, played_at FROM receipt WHERE message_id = $1
		AND EXISTS (SELECT 1 FROM message WHERE id = $1 AND workspace_id = $2) AND member > $3
		ORDER BY member LIMIT $4 + 0`,
		[]any{id, ws, after, limit}, func(r *sql.Rows) error {
			var got postern.Receipt
			err := r.Scan(&got.FromLID, &got.From, &got.DeliveredAt, &got.ReadAt, &got.PlayedAt)
			if postern.NumberOfChat(got.FromLID) != "" {
				got.FromLID = ""
			}
			list = append(list, got)
			return err
		})
	return list, err
}

func (s Messages) readActions(ctx context.Context, m postern.Message, p *postern.Progress) error {
	args := []any{m.DeviceID, m.NetworkID, m.ChatID, maxProgress}
	return s.db.Rows(ctx, readActions, args, func(r *sql.Rows) (err error) {
		var a postern.ActionTaken
		a.Message, err = scanMessage(withTail{r, []any{&a.FinishedAt}})
		p.Actions = append(p.Actions, a)
		return err
	})
}

// Events lists the events that report a message that was found by its workspace, oldest first: the newest
// [MostReported]. Events that were removed from the log are not listed.
func (s Messages) Events(ctx context.Context, m postern.Message) (list []postern.EventHead, err error) {
	err = s.db.Rows(ctx, readEvents, []any{m.ID, m.WorkspaceID, MostReported}, func(r *sql.Rows) error {
		var e postern.EventHead
		err := r.Scan(&e.ID, &e.Type, &e.At)
		list = append(list, e)
		return err
	})
	slices.Reverse(list)
	return list, err
}

// readPosts reads the events one by one, so that the planner of PostgreSQL cannot decide to scan
// the deliveries.
func (s Messages) readPosts(ctx context.Context, m postern.Message, p *postern.Progress) error {
	var last []postern.Post
	events, err := s.Events(ctx, m)
	for _, one := range events {
		e := postern.Post{EventID: one.ID, EventType: one.Type}
		args := []any{e.EventID, MostReported - len(last)}
		err = errors.Join(err, s.db.Rows(ctx, readLastPosts, args, func(r *sql.Rows) error {
			err := r.Scan(&e.DeliveryID, &e.EndpointID, &e.Number, &e.At, &e.DurationMs, &e.Status, &e.Reason)
			last = append(last, e)
			return err
		}))
	}
	for _, d := range last {
		if d.Number > 1 {
			err = errors.Join(err, s.readEarlierPosts(ctx, d, p))
		}
		if d.Number > 0 {
			p.Posts = append(p.Posts, d)
		}
	}
	return err
}

// readEarlierPosts reads the attempts before the last one of a delivery.
func (s Messages) readEarlierPosts(ctx context.Context, d postern.Post, p *postern.Progress) error {
	return s.db.Rows(ctx, readPosts, []any{d.DeliveryID, attemptsShown}, func(r *sql.Rows) error {
		err := r.Scan(&d.Number, &d.At, &d.DurationMs, &d.Status, &d.Reason)
		p.Posts = append(p.Posts, d)
		return err
	})
}
