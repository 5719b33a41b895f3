package gateway

import (
	"context"
	"slices"
	"strconv"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

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
	s := store.MessageSearch{Devices: slices.Clone(c.Key.Devices), DeviceID: q.DeviceID, ChatID: q.ChatID, Direction: q.Direction, Status: q.Status}
	p, err := g.db.Messages.Search(ctx, c.Workspace(), s, before, limit)
	if err != nil || !p.More {
		return paging.List[postern.Message]{Data: p.Messages}, err
	}
	return paging.List[postern.Message]{Data: p.Messages, Next: g.cursors.At(c.Workspace(), "search", strconv.FormatInt(p.Last, 10))}, nil
}

// Chats lists the chats of a device; the one with the newest message comes first.
func (g Messages) Chats(ctx context.Context, c access.Caller, device postern.DeviceID, p paging.Page) (paging.List[store.Chat], error) {
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
	return paging.Cut(g.cursors, c.Workspace(), kind, rows, limit+1, func(one store.Chat) string { return strconv.FormatInt(one.Place, 10) }), err
}

// ChatOf is the chat with a number in any accepted form, or the chat id itself where
// the vendor hides the number.
func ChatOf(s string) (string, bool) {
	chat, _, ok := parseRecipient(s)
	return chat, ok
}
