package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// QueueMessage accepts an outbound message: it uses a unit of the month's quota, writes the
// row and wakes the device's sender, all or nothing.
type QueueMessage struct {
	Message          postern.Message
	NewFile          *MediaRow // a file that is fetched for the message
	Month            string    // such as 2026-11
	WhenDisconnected string    // "fail" or "queue"
	Once             *Once
	Acts             []Act

	mixed bool // messages that do not have the normal priority wait for the device
}

// Queue accepts an outbound message. It returns an error when the device's state or the
// quota does not allow it, and [ErrAlreadyDone] when its idempotency key was used before.
func (s Messages) Queue(ctx context.Context, o QueueMessage) error { return write(ctx, s.core, o) }

// About lets workspaces take turns.
func (o QueueMessage) About() db.About {
	return db.About{Workspace: string(o.Message.WorkspaceID), Urgency: db.Fair}
}

// WriteAll reads everything that may refuse a message, and then writes the messages that
// are accepted.
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

// account identifies the month's quota of a workspace.
type account struct {
	ws    postern.WorkspaceID
	month string
}

func (o QueueMessage) account() account { return account{o.Message.WorkspaceID, o.Month} }

func (o QueueMessage) counter() counter { return counter{o.account(), o.Message.DeviceID} }

// room is the state that decides whether a message is accepted.
type room struct {
	known  bool           // the workspace has the device
	status postern.Status // of its device
	used   int            // of the month's quota
	quota  int            // of the workspace in a month
	mixed  bool           // see QueueMessage

	limited bool         // its account may not start chats, and what others write to it is stored
	until   postern.Time // when it may again; 0 if that is unknown
}

// refuseUnacceptable refuses the messages that the device's state or the quota does not
// allow. The quota is that of the workspace's plan at the commit, not what the server that
// accepts the message knows of the plan. No other writer can change either before the commit.
//
// Single writer: count.
func refuseUnacceptable(t *db.Tx, list []db.Pending[QueueMessage]) (rest []db.Pending[QueueMessage], err error) {
	rooms, err := readRooms(t, list)
	if err != nil {
		return nil, err
	}
	files, err := usable(t, list)
	if err != nil {
		return nil, err
	}
	accepted := make(map[account]int, 1)
	for _, p := range list {
		o := p.Value
		device := rooms[o.counter()]
		device.used += accepted[o.account()]
		if err := cmp.Or(o.check(device), o.checkFile(files)); err != nil {
			p.Refuse(err)
			continue
		}
		blocked, err := device.blocks(t, o.Message)
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(blocked, o.checkQuota(device)); err != nil {
			p.Refuse(err)
			continue
		}
		accepted[o.account()]++
		p.Value.mixed = device.mixed
		rest = append(rest, p)
	}
	return rest, nil
}

var readRoom = db.NewStatement("device, workspace, in_month",
	`SELECT d.id, d.workspace_id, @in_month, d.status, coalesce(m.messages, 0), p.plan, p.message_limit,
	EXISTS (SELECT 1 FROM message w WHERE w.device_id = d.id AND w.lane IN (0, 2) AND w.status IN `+unsent+`),
	d.limited_at, d.limited_until, d.receive
	FROM [@rows CROSS JOIN] device d JOIN workspace p ON p.id = d.workspace_id
	LEFT JOIN usage m ON m.workspace_id = d.workspace_id AND m.month = @in_month
	WHERE d.workspace_id = @workspace AND d.id = @device AND d.deleted_at = 0`)

// readRooms reads what each message needs to be accepted, once for all messages of a device
// in a month.
func readRooms(t *db.Tx, list []db.Pending[QueueMessage]) (map[counter]room, error) {
	rows, rooms := make([][]any, 0, len(list)), make(map[counter]room, 1)
	for _, p := range list {
		c := p.Value.counter()
		if _, asked := rooms[c]; !asked {
			rooms[c] = room{}
			rows = append(rows, []any{c.device, c.ws, c.month})
		}
	}
	err := t.EachRow(readRoom, rows, func(r *sql.Rows) error {
		c, one, ws := counter{}, room{known: true}, postern.Workspace{}
		var limitedAt, receive int64
		err := r.Scan(&c.device, &c.ws, &c.month, &one.status, &one.used, &ws.Plan, &ws.Limits.Messages, &one.mixed,
			&limitedAt, &one.until, &receive)
		var receives postern.Receive
		receiveColumn{&receives}.set(receive)
		one.limited = limitedAt > 0 && receives.Direct
		plan, _ := ws.Entitlement()
		one.quota = plan.Messages
		rooms[c] = one
		return err
	})
	return rooms, err
}

// check returns the error by which its device refuses a message, or nil.
func (o QueueMessage) check(device room) error {
	waits := device.status.HoldsSlot() && device.status != postern.Linking &&
		(o.WhenDisconnected == "queue" || o.Message.Status == postern.Scheduled)
	switch {
	case !device.known:
		return postern.Errorf(postern.NotFound, "there is no such device")
	case device.status != postern.Connected && !waits:
		return postern.Errorf(postern.DeviceNotConnected, "the device is %s; %s", device.status, toConnect(device.status))
	}
	return nil
}

// checkQuota returns the error that refuses a message that nothing else refuses, or nil.
func (o QueueMessage) checkQuota(device room) error {
	if device.used < device.quota {
		return nil
	}
	return postern.Errorf(postern.QuotaExhausted,
		"the plan's %d messages of this month are used up; the month ends at %s", device.quota, MonthEnd(o.Month))
}

// blocks returns the error that refuses a message by which an account would start a chat that may not, or nil.
func (r room) blocks(t *db.Tx, m postern.Message) (refusal, err error) {
	if !r.limited || !postern.IsDirect(m.ChatID) || m.Status == postern.Scheduled || m.ChatID == string(m.From) {
		return nil, nil // it is looked at again when it is sent
	}
	starts, err := startsChat(m, func(query string, args []any, dst ...any) error { return t.Row(query, args, dst...) })
	if err != nil || !starts {
		return nil, err
	}
	until := ""
	if r.until > 0 {
		until = " until " + r.until.String()
	}
	return postern.Errorf(postern.NewChatsBlocked, "the network does not let this account start chats%s; "+
		"messages to people who wrote to it still work", until), nil
}

// startsChat reports whether nobody has written in the chat of a message, or in the one to which its messages move.
func startsChat(m postern.Message, row func(query string, args []any, dst ...any) error) (bool, error) {
	written := ` AND i.direction = 'inbound' AND i.type <> 'call' AND ` + current("i") + ` LIMIT 1) AS written)`
	var n int
	err := row(`SELECT (SELECT count(*) FROM (SELECT 1 FROM message i WHERE i.device_id = $1 AND i.chat_id = $2`+written+`
		+ (SELECT count(*) FROM (SELECT 1 FROM chat_join j JOIN message i ON i.device_id = j.device_id
		AND i.chat_id = j.to_chat WHERE j.device_id = $1 AND j.from_chat = $2`+written,
		[]any{m.DeviceID, m.ChatID}, &n)
	return n == 0, err
}

// WaitsIn reports whether a message waits to be sent in a chat of a device.
func (s Outbox) WaitsIn(ctx context.Context, device postern.DeviceID, chat string) (bool, error) {
	return s.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM message WHERE device_id = $1 AND chat_id = $2
		AND status IN `+unsent+` LIMIT 1) AS waits`, device, chat)()
}

// StartsChat reports whether a message is to a person who has never written to the account.
func (s Outbox) StartsChat(ctx context.Context, m postern.Message) (bool, error) {
	if !postern.IsDirect(m.ChatID) {
		return false, nil
	}
	return startsChat(m, func(query string, args []any, dst ...any) error { return s.db.Row(ctx, query, args, dst...) })
}

// toConnect says what makes a device of a status accept messages.
func toConnect(s postern.Status) string {
	switch s {
	case postern.Unlinked:
		return "link it first: POST /v1/devices/{id}/link"
	case postern.LoggedOut, postern.Banned:
		return "link it again: POST /v1/devices/{id}/link"
	case postern.Linking:
		return "finish the open link attempt, and wait until the device is connected"
	case postern.Paused:
		return "resume it, or send with whenDisconnected set to queue"
	case postern.Connecting, postern.Connected, postern.Disconnected, postern.Restricted, postern.Conflict:
	}
	return "wait until it is connected, or send with whenDisconnected set to queue"
}

// accept writes the messages that are accepted.
func accept(t *db.Tx, list []db.Pending[QueueMessage]) error {
	units, rows := make(map[counter]int, 1), make([][]any, len(list))
	lanes, err := lanesOf(t, list)
	if err != nil {
		return err
	}
	identified, err := meetRecipients(t, list)
	if err != nil {
		return err
	}
	for i, p := range list {
		o := &p.Value
		units[o.counter()]++
		rows[i] = newMessage(o.Message, lanes.of(o.Message), "", false)
		if err := RecordActs(t, o.Acts); err != nil {
			return err
		}
	}
	if err := claim(t, oncesOf(list)); err != nil {
		return err
	}
	if err := spend(t, units); err != nil {
		return err
	}
	if err := useFiles(t, list); err != nil {
		return err
	}
	numbers, err := t.Inserted(addMessages, "n", rows)
	if err == nil && slices.Contains(numbers, 0) {
		err = errors.New("a network id was chosen twice")
	}
	for i := range list {
		m := &list[i].Value.Message
		t.Note(MessageMoved{m, "", numbers[i]})
		wakeSender(t, m.DeviceID, lanes.of(*m))
	}
	return cmp.Or(err, recordEvents(t, identified))
}

// meetRecipients gives messages to people their contacts, unless they have them.
func meetRecipients(t *db.Tx, list []db.Pending[QueueMessage]) ([]eventAt, error) {
	var some []int
	for i, p := range list {
		if m := p.Value.Message; m.ContactID == "" && !m.Person().IsEmpty() {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return nil, nil
	}
	return meet(t, len(some), func(i int) (*postern.Message, postern.Time) {
		m := &list[some[i]].Value.Message
		return m, m.CreatedAt
	})
}

// wakeSender wakes the sender of a device that has a message to send.
func wakeSender(t *db.Tx, device postern.DeviceID, lane postern.Lane) {
	t.Wake(OutboundQueued, string(device))
	if lane == postern.HighLane {
		t.Wake(OutboundUrgent, string(device))
	}
}

// laneKey identifies a chat in the queue of a device.
type laneKey struct {
	device postern.DeviceID
	chat   string
}

// chatLanes are the lanes of chats in the queues of their devices. A chat that is not among
// them has the normal lane.
type chatLanes map[laneKey]postern.Lane

func (l chatLanes) of(m postern.Message) postern.Lane {
	if lane, known := l[laneKey{m.DeviceID, m.ChatID}]; known {
		return lane
	}
	return postern.NormalLane
}

// lanesOf returns the lanes for messages that are accepted. As long as all messages of a
// device have the normal priority, it reads nothing.
func lanesOf(t *db.Tx, list []db.Pending[QueueMessage]) (chatLanes, error) {
	mixed := map[postern.DeviceID]bool{}
	for _, p := range list {
		if p.Value.mixed || p.Value.Message.Priority.Lane() != postern.NormalLane {
			mixed[p.Value.Message.DeviceID] = true
		}
	}
	var odd []postern.Message
	for _, p := range list {
		if m := p.Value.Message; mixed[m.DeviceID] && m.Status == postern.Queued { // a scheduled one joins later
			odd = append(odd, m)
		}
	}
	return joinLanes(t, odd)
}

var readLanes = db.NewStatement("device, chat",
	`SELECT @device, @chat, coalesce((SELECT m.lane FROM message m WHERE m.device_id = @device AND m.chat_id = @chat
		AND m.status IN `+unsent+` LIMIT 1), -1) [FROM @rows]`)

var raiseChats = db.NewStatement("device, chat, better",
	`UPDATE message SET lane = @better [FROM @rows] WHERE device_id = @device AND chat_id = @chat
		AND status IN `+unsent+` AND NOT lane <= @better`) // with lane > @better, SQLite would take another index

// joinLanes returns the lanes in which messages join the queue: each in the lane of its chat,
// or in the better one for which it asks. In the second case the messages of the chat that
// wait already change to that lane, so that the chat keeps its order. A message changes its
// lane at most twice.
//
// Single writer: change. raiseChats relies on the lanes that readLanes has read.
func joinLanes(t *db.Tx, list []postern.Message) (chatLanes, error) {
	lanes := chatLanes{}
	var rows [][]any
	for _, m := range list {
		key := laneKey{m.DeviceID, m.ChatID}
		lane, known := lanes[key]
		if !known {
			rows = append(rows, []any{m.DeviceID, m.ChatID})
		}
		if asked := m.Priority.Lane(); !known || asked < lane {
			lanes[key] = asked
		}
	}
	var raised [][]any
	err := t.EachRow(readLanes, rows, func(r *sql.Rows) error {
		var key laneKey
		var lane postern.Lane
		err := r.Scan(&key.device, &key.chat, &lane)
		switch better := lanes[key]; {
		case lane < 0: // nothing of the chat waits
		case lane <= better:
			lanes[key] = lane
		default:
			raised = append(raised, []any{key.device, key.chat, better})
		}
		return err
	})
	if err == nil && len(raised) > 0 {
		err = t.Each(raiseChats, raised)
	}
	return lanes, err
}

// QueuedMessage is a message to send; it includes whether an earlier attempt may have
// reached the network.
type QueuedMessage struct {
	postern.Message
	FrameLeft bool
	Lane      postern.Lane
	Attempts  int // so far
}

// Waiting are the first messages of each lane of a queue, oldest first.
type Waiting [postern.Lanes][]QueuedMessage

// Next returns up to limit messages of each lane that a device still has to send, except
// those of some chats.
func (s Outbox) Next(ctx context.Context, device postern.DeviceID, except []string, limit int) (Waiting, error) {
	if len(except) == 0 {
		return s.waiting(ctx, ``, device, limit)
	}
	return s.waiting(ctx, s.without(3), device, limit, asJSON(except))
}

// maxPosition is how far the messages before another are counted in each lane.
const maxPosition = 10_000

const readPosition = `WITH me AS (SELECT device_id, lane, n FROM message WHERE workspace_id = $1 AND id = $2
		AND status = 'queued')
	SELECT me.lane, ` + countLane + `me.lane AND w.n < me.n` + endCount + `, ` +
	countLane + `0` + endCount + `, ` + countLane + `1` + endCount + `, ` + countLane + `2` + endCount + ` FROM me`

const (
	countLane = `(SELECT count(*) FROM (SELECT 1 FROM message w WHERE w.device_id = me.device_id
		AND w.status IN ` + unsent + ` AND w.status = 'queued' AND w.lane = `
	endCount = ` LIMIT $3 + 0) AS counted)`
)

// Position returns how many messages of its device are expected to leave before a queued one;
// nil when it is no longer queued. It counts up to 10,000 messages of each lane.
func (s Outbox) Position(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID) (*int, error) {
	var lane postern.Lane
	var rank int
	var waiting [postern.Lanes]int
	err := s.db.Row(ctx, readPosition, []any{ws, id, maxPosition}, &lane, &rank,
		&waiting[postern.HighLane], &waiting[postern.NormalLane], &waiting[postern.LowLane])
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // it has left meanwhile
	}
	return new(lane.Ahead(rank, waiting)), err
}

// Repeating returns up to limit messages that a device still has to send although an earlier
// attempt may have sent them, oldest first.
func (s Outbox) Repeating(ctx context.Context, device postern.DeviceID, limit int) ([]QueuedMessage, error) {
	return s.queued(ctx, `device_id = $1 AND frame_left = 1 AND status IN `+unsent+` ORDER BY n LIMIT $2 + 0`,
		device, limit)
}

// without returns the condition that a message belongs to none of the chats of a parameter.
func (s Outbox) without(parameter int) string {
	return ` AND m.chat_id NOT IN ` + s.db.InList(parameter)
}

// waiting returns the queued messages for which the condition more holds. The parameters are
// the device, the limit, and those of more.
func (s Outbox) waiting(ctx context.Context, more string, args ...any) (w Waiting, err error) {
	lanes := make([]string, postern.Lanes)
	for lane := range lanes {
		lanes[lane] = fmt.Sprintf(`SELECT * FROM (SELECT n FROM message m WHERE device_id = $1 AND lane = %d
			AND status IN `+unsent+`%s ORDER BY `+queueOrder+` LIMIT $2 + 0) AS lane%d`, lane, more, lane)
	}
	list, err := s.queued(ctx, `n IN (`+strings.Join(lanes, ` UNION ALL `)+`) ORDER BY `+queueOrder, args...)
	for _, m := range list {
		w[m.Lane] = append(w[m.Lane], m)
	}
	return w, err
}

// queued returns the queued messages for which a condition holds, in its order.
func (s Outbox) queued(ctx context.Context, where string, args ...any) (list []QueuedMessage, err error) {
	err = s.db.Rows(ctx, `SELECT `+messageColumns+`, frame_left, lane, attempts FROM message WHERE `+where, args,
		func(r *sql.Rows) error {
			var q QueuedMessage
			m, err := scanMessage(withTail{r, []any{&q.FrameLeft, &q.Lane, &q.Attempts}})
			q.Message = m
			list = append(list, q)
			return err
		})
	return list, err
}

// ChatKind classifies a queued message by the history of the message and of its chat.
type ChatKind string

// The kinds of queued messages. Answering: a message from the chat arrived lately. Known: the
// chat has a message that reached or may have reached the network, or is not with one person: nobody starts a group or a
// channel by writing to it. Fresh: neither. A call is no message.
const (
	Answering ChatKind = "answering"
	Known     ChatKind = "known"
	Fresh     ChatKind = "fresh"
)

func wroteLately() string {
	return `EXISTS (SELECT 1 FROM message i WHERE i.device_id = m.device_id AND i.chat_id = m.chat_id
		AND i.direction = 'inbound' AND i.type <> 'call' AND i.created_at > $3 AND ` + current("i") + `)`
}

func hasMessages() string {
	return `EXISTS (SELECT 1 FROM message o WHERE o.device_id = m.device_id AND o.chat_id = m.chat_id
		AND ` + onNetwork("o") + ` AND o.type <> 'call' AND ` + current("o") + `)`
}

// onNetwork is the condition that a message has come from the network, or may have reached it: that of the index message_known,
// which has the messages of a chat of a device in their order.
func onNetwork(message string) string {
	return `(` + message + `.frame_left = 1 OR ` + message + `.status IN ('received', 'sent', 'delivered', 'read'))`
}

// NextOf returns up to limit messages of each lane and of one kind that a device still has to
// send, except those of some chats and those of [Outbox.Repeating]. An inbound message counts as
// lately arrived from since on.
func (s Outbox) NextOf(ctx context.Context, device postern.DeviceID, kind ChatKind, since postern.Time,
	except []string, limit int,
) (Waiting, error) {
	starts := `(NOT ` + hasMessages() + ` AND (m.chat_id LIKE '+%' OR m.chat_id LIKE 'lid:%'))`
	where := map[ChatKind]string{
		Answering: wroteLately(),
		Known:     `NOT ` + wroteLately() + ` AND NOT ` + starts,
		Fresh:     `NOT ` + wroteLately() + ` AND ` + starts,
	}[kind]
	if len(except) == 0 {
		return s.waiting(ctx, ` AND m.frame_left = 0 AND `+where, device, limit, since)
	}
	return s.waiting(ctx, ` AND m.frame_left = 0 AND `+where+s.without(4), device, limit, since, asJSON(except))
}

// Once makes an operation happen at most once: its row is written in the same transaction
// as the effect. A nil *Once has no effect.
type Once struct {
	WorkspaceID postern.WorkspaceID
	Method      string
	Path        string
	Key         string
	RequestHash [32]byte
	Answer      []byte // sealed
	At          postern.Time
}

// Place is the place for which the answer is encrypted.
func (o Once) Place() string { return o.WorkspaceID.AnswerPlace(o.Method, o.Path, o.Key) }

// ErrAlreadyDone means that another request with the same idempotency key was committed
// first. Its response can be read with [Idempotency.Answered].
var ErrAlreadyDone = errors.New("the idempotency key was used before")

// doOnce writes something rare at most once: check reads what may refuse it, and effect
// writes it together with the key. A refusal has written nothing, so the engine goes on with
// the other writes of the group; otherwise it would have to write all of them again.
//
// Single writer: count. What check has read still holds when effect writes.
func (c *core) doOnce(
	ctx context.Context, ws postern.WorkspaceID, o *Once, check, effect func(*db.Tx) error,
) error {
	return c.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		keys := []*Once{}
		if o != nil {
			keys = append(keys, o)
		}
		if used, err := usedKeys(t, keys); err != nil || len(used) > 0 {
			return cmp.Or(err, ErrAlreadyDone)
		}
		if err := check(t); err != nil {
			return err
		}
		if err := claim(t, keys); err != nil {
			return err
		}
		return effect(t)
	}))
}

// ClaimOnce writes an idempotency key in a transaction of another package's table, which must end with
// [ErrAlreadyDone] if the key was used before. nil is no key.
func ClaimOnce(t *db.Tx, o *Once) error {
	if o == nil {
		return nil
	}
	keys := []*Once{o}
	if used, err := usedKeys(t, keys); err != nil || len(used) > 0 {
		return cmp.Or(err, ErrAlreadyDone)
	}
	return claim(t, keys)
}

func unchecked(*db.Tx) error { return nil }

var claimKeys = db.NewStatement("workspace_id, method, path, key, request_hash, answer, created_at",
	`INSERT INTO idempotency (workspace_id, method, path, key, request_hash, answer, created_at) @values
	ON CONFLICT (workspace_id, method, path, key) DO UPDATE
	SET request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at
	WHERE idempotency.created_at <= excluded.created_at - CAST($8 AS BIGINT)`)

// claim writes the rows of keys that were not used before. If one of them was used, claim
// returns [ErrAlreadyDone], and the transaction must not commit anything of the list.
func claim(t *db.Tx, list []*Once) error {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = []any{o.WorkspaceID, o.Method, o.Path, o.Key, o.RequestHash[:], o.Answer, o.At}
	}
	n, err := t.Count(claimKeys, rows, IdempotencyKept.Milliseconds())
	if err == nil && int(n) < len(list) {
		return ErrAlreadyDone
	}
	return err
}

// place returns the columns that identify a key in the database.
func (o *Once) place() [4]string {
	return [4]string{db.Clean(string(o.WorkspaceID)), db.Clean(o.Method), db.Clean(o.Path), db.Clean(o.Key)}
}

var readUsedKeys = db.NewStatement("of_workspace, with_method, on_path, named, since",
	`SELECT workspace_id, method, path, key FROM idempotency [, @rows]
	WHERE workspace_id = @of_workspace AND method = @with_method AND path = @on_path AND key = @named
	AND created_at > @since`)

// usedKeys returns the keys of a list that were used before and have not expired.
func usedKeys(t *db.Tx, list []*Once) (used map[[4]string]bool, err error) {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = []any{o.WorkspaceID, o.Method, o.Path, o.Key, o.At.Add(-IdempotencyKept)}
	}
	used = map[[4]string]bool{}
	err = t.EachRow(readUsedKeys, rows, func(r *sql.Rows) error {
		var k [4]string
		err := r.Scan(&k[0], &k[1], &k[2], &k[3])
		used[k] = true
		return err
	})
	return used, err
}

// Answered returns the hash of the request and the sealed response that are stored under an
// idempotency key, if it was used within [IdempotencyKept]; ok is false otherwise.
func (s Idempotency) Answered(ctx context.Context, o Once) (hash [32]byte, answer []byte, ok bool, err error) {
	var h []byte
	err = s.db.Row(ctx, `SELECT request_hash, answer FROM idempotency WHERE workspace_id = $1 AND method = $2 AND path = $3
		AND key = $4 AND created_at > $5`,
		[]any{o.WorkspaceID, o.Method, o.Path, o.Key, o.At.Add(-IdempotencyKept)}, &h, &answer)
	if errors.Is(err, sql.ErrNoRows) {
		return hash, nil, false, nil
	}
	copy(hash[:], h)
	return hash, answer, err == nil, err
}

// Remove deletes a chunk of expired responses and returns how many it deleted.
func (s Idempotency) Remove(ctx context.Context, before postern.Time) (n int64, err error) {
	old, err := s.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM idempotency WHERE created_at <= $1
		LIMIT 1) AS old`, before)()
	if err != nil || !old {
		return 0, err // the common case costs no write
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err = t.Changed(`DELETE FROM idempotency WHERE (workspace_id, method, path, key) IN
			(SELECT workspace_id, method, path, key FROM idempotency WHERE created_at <= $1 LIMIT $2 + 0)`, before, purgeChunk)
		return err
	}))
	return n, err
}
