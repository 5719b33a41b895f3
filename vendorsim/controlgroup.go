package vendorsim

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/types"
)

type groupMessageBody struct {
	Group, From string
	Content
}

func (a controlAPI) writeInGroup(ctx context.Context, in groupMessageBody) (any, error) {
	return networkID(a.vendor.WriteInGroup(ctx, in.Group, in.From, in.Content))
}

type groupChangeBody struct {
	Group, By string
	GroupChange
}

func (a controlAPI) changeGroup(_ context.Context, in groupChangeBody) (any, error) {
	return struct{}{}, a.vendor.ChangeGroup(in.Group, in.By, in.GroupChange)
}

func (a controlAPI) listGroups(w http.ResponseWriter, r *http.Request) {
	controlAnswer(w, map[string]any{"data": a.vendor.Groups(r.FormValue("number"))}, nil)
}

type chatBody struct {
	Account, Chat   string
	Archived, Muted *bool
	ReadUntil       time.Time
}

// setChat lets the phone of an account set what is given for a chat.
func (a controlAPI) setChat(ctx context.Context, in chatBody) (any, error) {
	chats := a.vendor.PhoneChats()
	if in.Archived != nil {
		if err := chats.Archive(ctx, in.Account, in.Chat, *in.Archived); err != nil {
			return nil, err
		}
	}
	if in.Muted != nil {
		if err := chats.Mute(ctx, in.Account, in.Chat, *in.Muted, 0); err != nil {
			return nil, err
		}
	}
	if in.ReadUntil.IsZero() {
		return struct{}{}, nil
	}
	return struct{}{}, chats.MarkRead(ctx, in.Account, in.Chat, in.ReadUntil)
}

func (a controlAPI) listChats(w http.ResponseWriter, r *http.Request) {
	list, err := a.vendor.PhoneChats().List(r.FormValue("number"))
	controlAnswer(w, map[string]any{"data": list}, err)
}

type contactBody struct{ Account, Number, Name string }

func (a controlAPI) saveContact(ctx context.Context, in contactBody) (any, error) {
	return struct{}{}, a.vendor.AddressBook().Save(ctx, in.Account, BookEntry{Number: in.Number, Name: in.Name})
}

// List returns what the phone of an account shows of the chats for which something was set, by the chat: a number, or
// "group:" and the id of a group.
func (p PhoneChats) List(account string) (map[string]ChatSettings, error) {
	n, err := p.v.devices.linkedNumber(account)
	if err != nil {
		return nil, err
	}
	s := p.v.stateOf(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make(map[string]ChatSettings, len(s.chats))
	for address, set := range s.chats {
		list[chatAt(address)] = set
	}
	return list, nil
}

// chatAt returns the chat with an address.
func chatAt(address string) string {
	jid, err := types.ParseJID(address)
	if n, ok := numberOf(jid); err == nil && ok {
		return n.String()
	}
	return "group:" + strings.TrimSuffix(address, "@"+types.GroupServer)
}
