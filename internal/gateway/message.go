package gateway

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// NewMessage describes a message to send.
type NewMessage struct {
	DeviceID         postern.DeviceID
	To               string
	Body             string
	Metadata         map[string]string
	ExpiresIn        time.Duration // 0: one day
	WhenDisconnected string        // "fail" or "queue"; "" is fail
}

// Send accepts a message: it is durable, its unit of the quota is spent and its
// network id chosen. The session engine sends it.
func (g Messages) Send(
	ctx context.Context, c access.Caller, in NewMessage, idem *Idempotency,
) (Created[postern.Message], error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return Created[postern.Message]{}, err
	}
	if err := c.Allow(in.DeviceID); err != nil {
		return Created[postern.Message]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Message, func(*store.Once) error, error) {
		chat, to, err := checkMessage(in)
		if err != nil {
			return postern.Message{}, nil, err
		}
		d, err := g.db.Devices.Get(ctx, c.Workspace(), in.DeviceID)
		if err != nil {
			return postern.Message{}, nil, err
		}
		m := g.build(d, in, chat, to)
		return m, func(once *store.Once) error {
			return g.db.Messages.Queue(ctx, store.QueueMessage{
				Message: m, Month: store.MonthOf(m.CreatedAt), Quota: c.Plan.Messages, WhenDisconnected: in.WhenDisconnected, Once: once,
				Acts: did(c, m.CreatedAt, "message.sent", string(m.ID), string(m.To)),
			})
		}, nil
	})
}

func (g Messages) build(d postern.Device, in NewMessage, chat, to string) postern.Message {
	now := g.db.Now() // the month of its quota is that of the database's clock
	expiry := in.ExpiresIn
	if expiry == 0 {
		expiry = defaultExpiry
	}
	return postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Outbound, Type: postern.TypeText,
		ChatID: chat, From: d.PhoneNumber, To: postern.Maybe(to), Body: in.Body, Status: postern.Queued, NetworkID: postern.NewNetworkID(),
		Source: postern.FromAPI, Metadata: orEmpty(in.Metadata), CreatedAt: now, ExpiresAt: now.Add(expiry),
	}
}

func checkMessage(in NewMessage) (chat, to string, err error) {
	chat, to, ok := parseRecipient(in.To)
	switch {
	case !ok:
		err = postern.Invalid("/to", "write the recipient as + and 7 to 15 digits, or use a chatId from an event")
	case in.Body == "":
		err = postern.Invalid("/body", "a text message needs a body")
	case len(in.Body) > maxText:
		err = tooLarge("a text may be at most %d bytes long in UTF-8", maxText)
	case in.ExpiresIn < 0 || in.ExpiresIn > maxExpiry:
		err = postern.Invalid("/expiresIn", "the expiry must be from 1 to %d seconds", int(maxExpiry.Seconds()))
	default:
		err = checkMetadata(in.Metadata)
	}
	return chat, to, err
}

// parseRecipient takes a phone number in any accepted form, or the chat id of
// a person whose number the vendor hides.
func parseRecipient(s string) (chat, to string, ok bool) {
	if digits, hidden := strings.CutPrefix(s, "lid:"); hidden {
		ok = len(digits) >= 5 && len(digits) <= 20 &&
			!strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		return s, "", ok
	}
	number, ok := postern.ParsePhone(s)
	return postern.ChatOfNumber(number), number, ok
}

// Get finds one message.
func (g Messages) Get(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return postern.Message{}, err
	}
	return g.get(ctx, c, id)
}

// get finds a message of a device that the caller may use.
func (g Messages) get(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	m, err := g.db.Messages.Get(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Message{}, err
	}
	if !c.Key.Allows(m.DeviceID) {
		return postern.Message{}, postern.Errorf(postern.ResourceNotAllowed, "this key may not use that message")
	}
	return m, nil
}

// MessageQuery narrows a list of messages; zero members ask for nothing.
type MessageQuery struct {
	DeviceID  postern.DeviceID
	ChatID    string
	Direction string
	Status    string
	Since     postern.Time
	Until     postern.Time
	Archived  bool // those of numbers that a device had before, instead of the others
	Page      paging.Page
}

// List lists the messages the caller may see, newest first.
func (g Messages) List(ctx context.Context, c access.Caller, q MessageQuery) (paging.List[postern.Message], error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return paging.List[postern.Message]{}, err
	}
	sp, err := g.open(c.Workspace(), "messages", q.Page)
	if err != nil {
		return paging.List[postern.Message]{}, err
	}
	f := store.MessageFilter{
		Devices:   slices.Clone(c.Key.Devices),
		ChatID:    q.ChatID,
		Direction: q.Direction,
		Status:    q.Status,
		Since:     q.Since,
		Until:     q.Until,
		Archived:  q.Archived,
	}
	if q.DeviceID != "" {
		if _, err := g.devices().get(ctx, c, q.DeviceID); err != nil {
			return paging.List[postern.Message]{}, err
		}
		f.Devices = []postern.DeviceID{q.DeviceID}
	}
	rows, err := g.db.Messages.List(ctx, c.Workspace(), f, sp)
	return paging.Cut(
		g.cursors, c.Workspace(), "messages", rows, sp.Limit, func(m postern.Message) string { return string(m.ID) },
	), err
}

// RecordExport writes into the audit log that a member takes messages away as a file.
func (g Messages) RecordExport(ctx context.Context, c access.Caller) (err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return err
	}
	for _, act := range did(c, g.time(), "message.exported", "", "") {
		err = g.db.Audit.Record(ctx, act)
	}
	return err
}

// MessageSearch narrows what is looked for; zero members ask for nothing.
type MessageSearch struct {
	DeviceID  postern.DeviceID
	ChatID    string
	Direction string
	Status    string
	Page      paging.Page
}

// Search looks through the messages that the caller may see, newest first,
// for people: other than [Gateway.Messages] it never looks through everything for
// one page, so that a page may be short, or empty, with a next one behind it.
func (g Messages) Search(ctx context.Context, c access.Caller, q MessageSearch) (paging.List[postern.Message], error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return paging.List[postern.Message]{}, err
	}
	before, err := g.cursors.Number(c.Workspace(), "search", q.Page.Cursor)
	if err != nil {
		return paging.List[postern.Message]{}, err
	}
	if q.DeviceID != "" { // a wrong one is an error and not an empty list
		if _, err := g.devices().get(ctx, c, q.DeviceID); err != nil {
			return paging.List[postern.Message]{}, err
		}
	}
	limit := q.Page.Limit
	if limit == 0 {
		limit = paging.DefaultLimit
	}
	s := store.MessageSearch{
		Devices:   slices.Clone(c.Key.Devices),
		DeviceID:  q.DeviceID,
		ChatID:    q.ChatID,
		Direction: q.Direction,
		Status:    q.Status,
	}
	p, err := g.db.Messages.Search(ctx, c.Workspace(), s, before, limit)
	if err != nil || !p.More {
		return paging.List[postern.Message]{Data: p.Messages}, err
	}
	return paging.List[postern.Message]{
		Data: p.Messages,
		Next: g.cursors.At(c.Workspace(), "search", strconv.FormatInt(p.Last, 10)),
	}, nil
}

// Chats lists the chats of a device; the one with the newest message comes first.
func (g Messages) Chats(
	ctx context.Context, c access.Caller, device postern.DeviceID, p paging.Page,
) (paging.List[store.Chat], error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return paging.List[store.Chat]{}, err
	}
	if _, err := g.devices().get(ctx, c, device); err != nil {
		return paging.List[store.Chat]{}, err
	}
	kind := "chats " + string(device) // a place in another device's list is none in this one
	before, err := g.cursors.Number(c.Workspace(), kind, p.Cursor)
	if err != nil {
		return paging.List[store.Chat]{}, err
	}
	limit := p.Limit
	if limit == 0 {
		limit = paging.DefaultLimit
	}
	rows, err := g.db.Chats.List(ctx, c.Workspace(), device, before, limit+1)
	return paging.Cut(
		g.cursors,
		c.Workspace(),
		kind,
		rows,
		limit+1,
		func(one store.Chat) string { return strconv.FormatInt(one.Place, 10) },
	), err
}

// ChatOf is the chat with a number in any accepted form, or the chat id itself where
// the vendor hides the number.
func ChatOf(s string) (string, bool) {
	chat, _, ok := parseRecipient(s)
	return chat, ok
}
