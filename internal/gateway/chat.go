package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/chats"
	"postern/internal/trace"
)

func (g *core) chats() chats.Table { return chats.Of(g.db) }

// ChatQuery narrows a list of chats. A zero field does not narrow it.
type ChatQuery struct {
	DeviceID postern.DeviceID
	Archived *bool
	Unread   bool // only chats with unread messages
	Page     paging.Page
}

// List lists the chats that the caller may see, the one with the newest message first. A page may be short or empty
// although there is a next one, because it looks at a limited number of chats.
func (g Chats) List(ctx context.Context, c access.Caller, q ChatQuery) (list paging.List[postern.Chat], err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return list, err
	}
	if q.DeviceID != "" { // an unknown device is an error and not an empty list
		if _, err := g.devices().get(ctx, c, q.DeviceID); err != nil {
			return list, err
		}
	}
	kind := "chats " + string(q.DeviceID) // a cursor is valid for the list of one device, or of all
	below, err := g.cursors.Number(c.Workspace(), kind, q.Page.Cursor)
	if err != nil {
		return list, err
	}
	p, err := g.chats().List(ctx, c.Workspace(), chats.Query{
		Devices: c.Key.Devices, DeviceID: q.DeviceID, Archived: q.Archived, Unread: q.Unread, Below: below,
		Limit: cmp.Or(q.Page.Limit, paging.DefaultLimit),
	}, g.time())
	if err != nil {
		return list, err
	}
	p.Cut(paging.Fit(p.Chats, paging.MaxBytes))
	if list.Data = p.Chats; p.More {
		list.Next = g.cursors.At(c.Workspace(), kind, fmt.Sprint(p.Last))
	}
	return list, nil
}

// Get returns a chat of a device. A chat that the device does not have, and that could be started, is empty.
func (g Chats) Get(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (one postern.Chat, err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return one, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return one, err
	}
	if chat, err = postern.ParseChat(chat); err != nil {
		return one, noChat()
	}
	return g.chats().Get(ctx, c.Workspace(), id, chat, g.time())
}

func noChat() error { return postern.Errorf(postern.NotFound, "the device has no such chat") }

// MarkRead marks the messages of a chat as read, and tells their senders. That is durable when it returns: it waits
// in the order of the chat like an action on a message. A second call has no further effect.
func (g Chats) MarkRead(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (one postern.Chat, err error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return one, err
	}
	d, err := g.devices().get(ctx, c, id)
	if err != nil {
		return one, err
	}
	if chat, err = postern.ParseChat(chat); err != nil {
		return one, noChat()
	}
	if one, err = g.chats().Get(ctx, c.Workspace(), id, chat, g.time()); err != nil {
		return one, err
	}
	now := g.db.Now()
	action := postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Outbound,
		ChatID: chat, From: d.PhoneNumber, To: postern.Maybe(postern.NumberOfChat(chat)),
		Status: postern.Queued, NetworkID: postern.NewNetworkID(), Source: postern.FromAPI,
		Metadata: map[string]string{}, CreatedAt: now, ExpiresAt: now.Add(defaultExpiry), Trace: trace.Parent(ctx),
	}
	acts := did(c, now, "chat.read", string(id), strings.TrimPrefix(chat, "lid:"))
	if err := g.db.Messages.QueueChatRead(ctx, store.QueueAction{Action: action, Acts: acts}); err != nil {
		return one, err
	}
	return g.chats().Get(ctx, c.Workspace(), id, chat, g.time())
}

// ReadElsewhere records what an account has read on its phone or on another companion.
func (g Sessions) ReadElsewhere(ctx context.Context, r store.ReadElsewhere) error {
	return g.db.Messages.ReadElsewhere(ctx, r)
}
