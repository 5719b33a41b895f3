package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"postern/internal/access"
	"postern/internal/linkpreview"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/trace"
)

// NewMessage describes a message to send.
type NewMessage struct {
	DeviceID         postern.DeviceID
	To               string
	Content          postern.Content   // its Media is set from the next member
	Media            *NewMedia         // the file, of kinds that carry one
	LinkPreview      bool              // show a preview of the text's first link
	ReplyTo          postern.MessageID // a message of the same chat; "" for none
	Metadata         map[string]string
	ExpiresIn        time.Duration // 0 means one day; at most 7 days, from SendAt on
	SendAt           postern.Time  // 0 means at once; at most a year ahead
	WhenDisconnected string        // "fail" or "queue"; "" means fail
	Priority         postern.Priority
}

// Send accepts a message. When it returns, the message is durable, one unit of the quota
// is spent and the network id is chosen. The session engine sends it.
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
		in, chat, err := checkMessage(in)
		if err == nil {
			err = checkSendAt(in.SendAt, g.db.Now())
		}
		if err != nil {
			return postern.Message{}, nil, err
		}
		known, err := g.contacts().Named(ctx, c.Workspace(), in.DeviceID, chat)
		if err != nil {
			return postern.Message{}, nil, err
		}
		chat = cmp.Or(known.ChatID, chat)
		if in.ReplyTo != "" {
			if _, err := g.quoted(ctx, c, in.ReplyTo, in.DeviceID, chat); err != nil {
				return postern.Message{}, nil, err
			}
		}
		d, err := g.db.Devices.Get(ctx, c.Workspace(), in.DeviceID)
		if err != nil {
			return postern.Message{}, nil, err
		}
		if err := g.notACommunity(ctx, d, chat); err != nil {
			return postern.Message{}, nil, err
		}
		in, file, err := g.attach(ctx, c, in)
		if err != nil {
			return postern.Message{}, nil, err
		}
		m := g.build(d, in, chat)
		m.Trace = trace.Parent(ctx)
		if len(known.DeviceIDs) > 0 { // otherwise the device meets the contact in the commit
			m.ContactID = known.ID
		}
		if file != nil {
			file.UsedAt = m.ExpiresAt
		}
		return m, func(once *store.Once) error {
			err := g.db.Messages.Queue(ctx, store.QueueMessage{
				Message: m, NewFile: file, Month: store.MonthOf(m.CreatedAt),
				WhenDisconnected: in.WhenDisconnected, Once: once,
				Acts: did(c, m.CreatedAt, "message.sent", string(m.ID), ""),
			})
			if err != nil && in.Media != nil {
				err = g.withdraw(ctx, in.Media, store.MediaRow{Media: *m.Content.Media, WorkspaceID: m.WorkspaceID}, err)
			}
			return err
		}, nil
	})
}

func (g Messages) build(d postern.Device, in NewMessage, chat string) postern.Message {
	now := g.db.Now() // the database's clock also decides which month's quota is used
	expiry := in.ExpiresIn
	if expiry == 0 {
		expiry = defaultExpiry
	}
	status, from := postern.Queued, now
	if in.SendAt > now {
		status, from = postern.Scheduled, in.SendAt
	} else {
		in.SendAt = 0 // that time has come
	}
	return postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Outbound,
		Content: in.Content, ReplyTo: postern.Maybe(in.ReplyTo),
		ChatID: chat, From: d.PhoneNumber, To: postern.Maybe(postern.NumberOfChat(chat)), Status: status, SendAt: in.SendAt,
		NetworkID: postern.NewNetworkID(),
		Source:    postern.FromAPI, Metadata: orEmpty(in.Metadata), CreatedAt: now, ExpiresAt: from.Add(expiry),
		Priority: in.Priority.Stored(),
	}
}

// checkMessage returns a message in the form in which it is stored, and its chat.
func checkMessage(in NewMessage) (_ NewMessage, chat string, err error) {
	chat, err = postern.ParseChat(in.To)
	if err != nil {
		return in, "", postern.Invalid("/to", "%v", err)
	}
	if in.Media != nil { // it is looked up when nothing else is wrong
		in.Content.Media = &postern.Media{Filename: cmp.Or(in.Media.Filename, "file")}
	}
	if in.Content, err = in.Content.Checked(); err == nil {
		err = in.Content.CheckChat(chat)
	}
	if err != nil {
		return in, "", err
	}
	if in.LinkPreview && in.Content.Kind != postern.KindText {
		return in, "", postern.Invalid("/linkPreview", "a message of this kind has no such member")
	}
	in.Content.LinkPreview = previewOf(in.Content.Text, in.LinkPreview)
	switch {
	case in.ReplyTo != "" && postern.IsChannel(chat):
		err = postern.Invalid("/replyTo", "a post in a channel cannot reply to another message")
	case in.ReplyTo != "" && chat == postern.StatusChat:
		err = postern.Invalid("/replyTo", "a status post cannot reply to another message")
	case in.LinkPreview && postern.IsChannel(chat):
		err = postern.Invalid("/linkPreview", "a post in a channel has no preview of its link so far")
	case in.ExpiresIn < 0 || in.ExpiresIn > maxExpiry:
		err = postern.Invalid("/expiresIn", "the expiry must be from 1 to %d seconds", int(maxExpiry.Seconds()))
	case !in.Priority.IsKnown():
		err = postern.Invalid("/priority", "the priority must be high, normal or low")
	default:
		err = checkMetadata(in.Metadata)
	}
	return in, chat, err
}

// previewOf returns the preview of a text as far as it is known before its link is looked up; nil
// if none is wanted, or if the text has no link.
func previewOf(text string, wanted bool) *postern.LinkPreview {
	link := ""
	if wanted {
		link = linkpreview.First(text)
	}
	if link == "" {
		return nil
	}
	return &postern.LinkPreview{URL: link}
}

// checkSendAt refuses a time that is too far away. A time that has passed means at once.
func checkSendAt(at, now postern.Time) error {
	if at > now.Add(maxSchedule) {
		return postern.Invalid("/sendAt", "a message can be scheduled for at most %d days ahead", int(maxSchedule/day))
	}
	return nil
}

// quoted returns the message to which one of a chat replies. It refuses one of another chat,
// and one that the network will never have.
func (g Messages) quoted(
	ctx context.Context, c access.Caller, id postern.MessageID, device postern.DeviceID, chat string,
) (postern.Message, error) {
	m, err := g.get(ctx, c, id)
	switch {
	case err != nil:
	case m.DeviceID != device || m.ChatID != chat:
		err = postern.Invalid("/replyTo", "the message belongs to another chat; name one of the same chat")
	case m.NeverSent():
		err = postern.Invalid("/replyTo", "the message was never sent")
	case m.Content.Kind == postern.KindCall:
		err = postern.Invalid("/replyTo", "this is a call, to which nobody can reply with a message")
	}
	return m, err
}

// Get finds one message, and its position if it is queued.
func (g Messages) Get(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return postern.Message{}, err
	}
	m, err := g.get(ctx, c, id)
	if err == nil && m.Status == postern.Queued {
		m.Position, err = g.db.Outbox.Position(ctx, c.Workspace(), id)
	}
	return m, err
}

// Timeline lists what happened to a message, oldest first. Posts to webhook endpoints need
// webhooks:read in addition, and a key that may use the endpoints.
func (g Messages) Timeline(
	ctx context.Context, c access.Caller, id postern.MessageID, page paging.Page,
) (list paging.List[postern.TimelineEntry], err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return list, err
	}
	m, err := g.get(ctx, c, id)
	if err != nil {
		return list, err
	}
	kind := "timeline " + string(id)
	after, rows, err := g.cursors.Open(c.Workspace(), kind, page)
	if err != nil {
		return list, err
	}
	p, err := g.db.Messages.Progress(ctx, m)
	if err == nil {
		p.Posts, err = g.postsFor(ctx, c, p.Posts)
	}
	if err != nil {
		return list, err
	}
	entries := m.Timeline(p)
	first, _ := slices.BinarySearchFunc(entries, after, func(e postern.TimelineEntry, after string) int {
		return cmp.Or(cmp.Compare(e.Place(), after), -1) // the entry itself was on the page before
	})
	return paging.Cut(g.cursors, c.Workspace(), kind, entries[first:], rows, postern.TimelineEntry.Place), nil
}

// MostReported is how many events of a message are listed.
const MostReported = store.MostReported

// Events lists the events that report a message, oldest first: the newest [MostReported]. Events that were removed from
// the log are not listed.
func (g Messages) Events(
	ctx context.Context, c access.Caller, id postern.MessageID,
) (list []postern.EventHead, err error) {
	if err := cmp.Or(c.Permit(postern.MessagesRead), c.Permit(postern.EventsRead)); err != nil {
		return nil, err
	}
	m, err := g.get(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return g.db.Messages.Events(ctx, m)
}

// Receipts lists who has confirmed a message that was sent, and when. Members of a group are in the order of their
// addresses on the network.
func (g Messages) Receipts(
	ctx context.Context, c access.Caller, id postern.MessageID, page paging.Page,
) (list paging.List[postern.Receipt], err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return list, err
	}
	m, err := g.get(ctx, c, id)
	if err != nil {
		return list, err
	}
	kind := "receipts " + string(id)
	after, rows, err := g.cursors.Open(c.Workspace(), kind, page)
	if err != nil {
		return list, err
	}
	receipts, err := g.db.Messages.Receipts(ctx, c.Workspace(), id, after, rows)
	if one, ok := m.Receipt(); ok && after == "" {
		receipts = []postern.Receipt{one}
	}
	for i := range receipts {
		receipts[i].NotBefore(m.CreatedAt)
	}
	return paging.Cut(g.cursors, c.Workspace(), kind, receipts, rows, postern.Receipt.Place), err
}

// postsFor leaves out the posts that the caller may not see.
func (g Messages) postsFor(ctx context.Context, c access.Caller, posts []postern.Post) ([]postern.Post, error) {
	if c.Permit(postern.WebhooksRead) != nil {
		return nil, nil //nolint:nilerr // such a caller sees none
	}
	seen := map[postern.EndpointID]bool{}
	for _, p := range posts {
		if _, known := seen[p.EndpointID]; known {
			continue
		}
		_, err := g.webhooks().get(ctx, c, p.EndpointID)
		if reason := postern.ReasonOf(err); err != nil && reason != postern.NotFound && reason != postern.ResourceNotAllowed {
			return nil, err
		}
		seen[p.EndpointID] = err == nil
	}
	return slices.DeleteFunc(posts, func(p postern.Post) bool { return !seen[p.EndpointID] }), nil
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

// MessageQuery narrows a list of messages. A zero field does not narrow it.
type MessageQuery struct {
	DeviceID  postern.DeviceID
	ChatID    string // as [postern.ParseChat] returns it
	Direction string
	Kind      postern.Kind
	Statuses  []string // any of these
	Text      string   // all of its words are in the message; the last one may be a beginning
	Since     postern.Time
	Until     postern.Time
	Archived  bool // only messages from a number that the device had before
	Page      paging.Page
}

// List lists the messages that the caller may see, newest first. A page may be short or
// empty although there is a next one, because it looks at a limited number of messages.
func (g Messages) List(ctx context.Context, c access.Caller, q MessageQuery) (paging.List[postern.Message], error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return paging.List[postern.Message]{}, err
	}
	s := store.MessageSearch{
		Devices: slices.Clone(c.Key.Devices), DeviceID: q.DeviceID, ChatID: q.ChatID, Direction: q.Direction,
		Kind: q.Kind, Statuses: q.Statuses, Text: q.Text, Since: q.Since, Until: q.Until, Archived: q.Archived,
	}
	below, err := g.messagePlace(c.Workspace(), s, q.Page.Cursor)
	if err != nil {
		return paging.List[postern.Message]{}, err
	}
	if q.DeviceID != "" { // an unknown device is an error and not an empty list
		if _, err := g.devices().get(ctx, c, q.DeviceID); err != nil {
			return paging.List[postern.Message]{}, err
		}
	}
	if s.ChatID, err = g.chatOf(ctx, c.Workspace(), q.ChatID); err != nil {
		return paging.List[postern.Message]{}, err
	}
	p, err := g.db.Messages.Search(ctx, c.Workspace(), s, below, cmp.Or(q.Page.Limit, paging.DefaultLimit))
	p.Cut(paging.Fit(p.Messages, paging.MaxBytes))
	if err != nil || !p.More {
		return paging.List[postern.Message]{Data: p.Messages}, err
	}
	return paging.List[postern.Message]{Data: p.Messages, Next: g.messageCursor(c.Workspace(), s, p.Last)}, nil
}

// The kinds of cursors of a list of messages: a list in the order of time continues at a
// time, too.
const (
	messagesByNumber = "messages by number"
	messagesByTime   = "messages by time"
)

func (g Messages) messageCursor(ws postern.WorkspaceID, s store.MessageSearch, p store.MessagePlace) string {
	if s.ByTime() {
		return g.cursors.At(ws, messagesByTime, fmt.Sprintf("%d %d", p.At, p.N))
	}
	return g.cursors.At(ws, messagesByNumber, strconv.FormatInt(p.N, 10))
}

func (g Messages) messagePlace(
	ws postern.WorkspaceID, s store.MessageSearch, cursor string,
) (p store.MessagePlace, err error) {
	if !s.ByTime() {
		p.N, err = g.cursors.Number(ws, messagesByNumber, cursor)
		return p, err
	}
	at, _, err := g.cursors.Open(ws, messagesByTime, paging.Page{Cursor: cursor})
	if err == nil && at != "" {
		_, err = fmt.Sscanf(at, "%d %d", &p.At, &p.N)
	}
	return p, err
}

// Near returns the cursor of a list of a message's chat from which the message is shown, with a few
// newer ones before it; "" is the start of the list.
func (g Messages) Near(ctx context.Context, c access.Caller, id postern.MessageID) (cursor string, err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return "", err
	}
	m, err := g.get(ctx, c, id)
	if err != nil {
		return "", err
	}
	p, err := g.db.Messages.Around(ctx, m, newerShown)
	if err != nil || p.N == 0 {
		return "", err
	}
	return g.messageCursor(c.Workspace(), store.MessageSearch{ChatID: m.ChatID}, p), nil
}

// newerShown is how many newer messages are shown with one that was looked for.
const newerShown = 10

// RecordExport records in the audit log that a member exports messages to a file.
func (g Messages) RecordExport(ctx context.Context, c access.Caller) (err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return err
	}
	for _, act := range did(c, g.time(), "message.exported", "", "") {
		err = g.db.Audit.Record(ctx, act)
	}
	return err
}
