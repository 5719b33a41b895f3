package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/history"
	"postern/internal/store/requests"
)

// ticket names the request whose outcome a caller waits for.
type ticket struct {
	Request string `json:"request"`
}

// askOnce hands a request to the live session of a device, on whichever server it runs, and waits for the outcome. With
// an idempotency key, a retry waits for the outcome of the first request; a refusal frees the key. The caller's rights
// were checked, but for the device.
func askOnce[T, I any](
	ctx context.Context, g *core, c access.Caller, id postern.DeviceID, idem *Idempotency, kind string,
	input func() (I, error),
) (answer Created[T], err error) {
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return answer, err
	}
	t, err := create(ctx, g, c.Workspace(), idem, func() (ticket, func(*store.Once) error, error) {
		in, err := input()
		if err != nil {
			return ticket{}, nil, err
		}
		return request(ctx, g, d, kind, in)
	})
	if err != nil {
		return answer, err
	}
	outcome, ok, err := g.requests().Wait(ctx, c.Workspace(), t.Value.Request)
	if err != nil {
		return answer, err
	}
	if !ok {
		return answer, g.unanswered(ctx, c.Workspace(), t.Value.Request)
	}
	g.requests().Forget(c.Workspace(), t.Value.Request)
	if err := outcome.Err(); err != nil {
		return answer, err
	}
	answer.Replayed = t.Replayed
	return answer, json.Unmarshal(outcome.Output, &answer.Value)
}

// unanswered returns the error of a request without an outcome.
func (g *core) unanswered(ctx context.Context, ws postern.WorkspaceID, id string) error {
	withdrawn, err := g.requests().Withdraw(ctx, ws, id)
	switch {
	case err != nil:
		return err
	case withdrawn:
		return postern.Errorf(postern.DeviceNotConnected,
			"the device was not ready for the request within 20 seconds; nothing happened, so try again")
	}
	return postern.Errorf(postern.NetworkTimeout,
		"the network did not answer within 20 seconds; check whether the request had an effect before you repeat it")
}

// request prepares a request to the live session of a device.
func request(
	ctx context.Context, g *core, d postern.Device, kind string, in any,
) (t ticket, commit func(*store.Once) error, err error) {
	if d.Status != postern.Connected {
		return t, nil, postern.Errorf(
			postern.DeviceNotConnected, "the device is %s; the network can be asked while it is connected", d.Status)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return t, nil, fmt.Errorf("encode a request: %w", err)
	}
	t.Request = postern.NewRequestID()
	r := requests.Request{
		ID: t.Request, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Kind: kind, Input: raw,
		ExpiresAt: g.time().Add(requests.Timeout),
	}
	return t, func(once *store.Once) error { return g.requests().Put(ctx, r, once) }, nil
}

func (g *core) requests() requests.Table { return requests.Of(g.db, g.box) }

// Requests returns the requests to live sessions.
func (g Sessions) Requests() requests.Table { return g.requests() }

// AskHistory is the request for older messages of a chat that the live session of a device carries out.
const AskHistory = "history.ask"

// HistoryInput is what this request needs.
type HistoryInput struct {
	ChatID    string       `json:"chatId"`
	NetworkID string       `json:"networkId"` // of the oldest message that is known
	FromMe    bool         `json:"fromMe,omitempty"`
	At        postern.Time `json:"at"`
	Count     int          `json:"count"`
}

// AskedHistory says which messages the phone was asked for.
type AskedHistory struct {
	ChatID string            `json:"chatId" doc:"The chat." example:"+15551234567"`
	Before postern.MessageID `json:"before" doc:"The oldest message of the chat that is stored. The phone was asked for messages before it." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Count  int               `json:"count" doc:"How many messages the phone was asked for. It may send fewer, or none." example:"50"`
}

// AskHistory asks the phone of a device for the messages before the oldest one of a chat. The phone may answer much later,
// or never.
func (g Messages) AskHistory(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, count int,
) (asked AskedHistory, err error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return asked, err
	}
	_, err = askOnce[struct{}](ctx, g.core, c, id, nil, AskHistory, func() (in HistoryInput, err error) {
		to, err := g.chatIn(ctx, c.Workspace(), id, chat)
		if err != nil {
			return in, err
		}
		if !postern.IsDirect(to) && !postern.IsGroup(to) {
			return in, noChat()
		}
		m, ok, err := g.db.Messages.Oldest(ctx, c.Workspace(), id, to)
		if err == nil && !ok {
			err = postern.Errorf(postern.NotFound, "no message of this chat is stored, so that the phone cannot be asked "+
				"for the messages before it; wait until there is one")
		}
		asked = AskedHistory{ChatID: to, Before: m.ID, Count: count}
		return HistoryInput{
			ChatID: to, NetworkID: m.NetworkID, FromMe: m.Direction == postern.Outbound, At: max(m.SentAt, 1), Count: count,
		}, err
	})
	return asked, err
}

// History returns the parts of phones' histories that are to be read.
func (g Sessions) History() history.Table { return history.Of(g.db, g.box) }

// Past is a message of a phone's history.
type Past struct {
	Message postern.Message
	Sender  string // with the network id, what identifies an inbound message
	QuoteOf string // network id of the message to which it replies; "" for none
	File    ArrivedFile
}

// RecordHistory stores messages that a phone had before, oldest first, without events. Those that are known stay as they
// are. Their files are fetched when somebody asks for them.
func (g Sessions) RecordHistory(ctx context.Context, d postern.Device, list []Past) error {
	ids, rows := map[string]postern.MessageID{}, make([]store.RecordInbound, len(list))
	now := g.time()
	for i, p := range list {
		m := p.Message
		m.ID, m.CreatedAt, m.History, m.Metadata = postern.NewMessageID(), m.SentAt, true, map[string]string{}
		if err := g.quotes(ctx, d, &m, p.QuoteOf, ids); err != nil {
			return err
		}
		ids[m.ChatID+" "+m.NetworkID] = m.ID
		rows[i] = store.RecordInbound{Sender: p.Sender, Now: now}
		if m.Content.Media != nil {
			f := g.received(&m, p.File)
			f.NextAt, f.CreatedAt, f.UsedAt = now.Add(store.UntilAsked), now, now
			rows[i].File = f
		}
		rows[i].Message = m
	}
	return g.db.Messages.RecordHistory(ctx, store.RecordHistory{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, List: rows,
	})
}

// quotes sets to which message m replies. ids are those of messages that are stored together with it.
func (g Sessions) quotes(
	ctx context.Context, d postern.Device, m *postern.Message, of string, ids map[string]postern.MessageID,
) (err error) {
	if of == "" {
		return nil
	}
	m.ReplyTo, err = g.Quoted(ctx, d, m.ChatID, of)
	if m.ReplyTo == "" {
		m.ReplyTo = postern.Maybe(ids[m.ChatID+" "+of])
	}
	return err
}

// SandboxPast is a text that a simulated phone had before the device was linked.
type SandboxPast struct {
	Body   string
	FromMe bool // the owner of the phone wrote it, and not the contact
	SentAt time.Time
}

// Remember adds texts to what the phone of a device had before it was linked, and lets it send its history. With
// onRequest it waits until it is asked.
func (g SandboxPhones) Remember(
	ctx context.Context, c access.Caller, id postern.DeviceID, from string, list []SandboxPast, onRequest bool,
) error {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return err
	}
	if from, err = postern.ParsePhone(from); err != nil {
		return postern.Invalid("/from", "%v", err)
	}
	return network.Remember(ctx, string(d.PhoneNumber), from, list, onRequest)
}
