package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/channels"
	"postern/internal/store/chats"
	"postern/internal/trace"
)

func (g *core) chats() chats.Table { return chats.Of(g.db) }

// ChatQuery narrows a list of chats. A zero field does not narrow it.
type ChatQuery struct {
	DeviceID postern.DeviceID
	Archived *bool
	Unread   bool   // only chats with unread messages
	Label    string // only chats with a label of this id, which is that of one account
	Assignee postern.UserID
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
		Devices: c.Key.Devices, DeviceID: q.DeviceID, Archived: q.Archived, Unread: q.Unread, Label: q.Label,
		Assignee: q.Assignee,
		Below:    below, Limit: cmp.Or(q.Page.Limit, paging.DefaultLimit),
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
	if chat, err = g.chatIn(ctx, c.Workspace(), id, chat); err != nil {
		return one, err
	}
	return g.chats().Get(ctx, c.Workspace(), id, chat, g.time())
}

// Note returns what the people of the workspace have noted about a chat of a device.
func (g Chats) Note(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (n postern.ChatNote, err error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return n, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return n, err
	}
	if chat, err = g.chatIn(ctx, c.Workspace(), id, chat); err != nil {
		return n, err
	}
	return g.chats().Note(ctx, c.Workspace(), id, chat)
}

// Assign lets the member with an email address take care of a chat; for "", nobody does.
func (g Chats) Assign(ctx context.Context, c access.Caller, id postern.DeviceID, chat, email string) error {
	chat, err := g.notable(ctx, c, id, chat)
	if err != nil {
		return err
	}
	return g.chats().Assign(ctx, c.Workspace(), id, chat, strings.ToLower(strings.TrimSpace(email)))
}

// SetNote replaces the text that is noted about a chat.
func (g Chats) SetNote(ctx context.Context, c access.Caller, id postern.DeviceID, chat, text string) error {
	chat, err := g.notable(ctx, c, id, chat)
	if err != nil {
		return err
	}
	if text = strings.TrimSpace(text); utf8.RuneCountInString(text) > postern.MaxChatNote || !utf8.ValidString(text) ||
		strings.ContainsRune(text, 0) {
		return postern.Invalid("/note", "a note has at most %d characters of text", postern.MaxChatNote)
	}
	return g.chats().SetNote(ctx, c.Workspace(), id, chat, text)
}

// notable returns a chat about which the caller may note something.
func (g Chats) notable(ctx context.Context, c access.Caller, id postern.DeviceID, chat string) (string, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return "", err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return "", err
	}
	chat, err := g.chatIn(ctx, c.Workspace(), id, chat)
	if err != nil {
		return "", err
	}
	_, err = g.chats().Get(ctx, c.Workspace(), id, chat, g.time())
	return chat, err
}

// chatIn reads the id of a chat of a device from a request. The chat of a person whose number became known is found by
// its id from before that, too. While its messages move to the other chat, it is still itself.
func (g *core) chatIn(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, text string,
) (string, error) {
	chat, err := postern.ParseChat(text)
	if err != nil {
		return "", noChat()
	}
	now, err := g.chatOf(ctx, ws, chat)
	if err != nil || now == chat {
		return chat, err
	}
	moves, err := g.chats().Moves(ctx, id, chat)
	if moves {
		return chat, err
	}
	return now, err
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
	if chat, err = g.chatIn(ctx, c.Workspace(), id, chat); err != nil {
		return one, err
	}
	if one, err = g.maybeEmpty(ctx, c, id, chat); err != nil {
		return one, err
	}
	now := g.db.Now()
	action := postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Outbound,
		ChatID: chat, From: d.PhoneNumber, To: postern.Maybe(postern.NumberOfChat(chat)),
		Status: postern.Queued, NetworkID: postern.NewNetworkID(), Source: postern.FromAPI,
		Metadata: map[string]string{}, CreatedAt: now, ExpiresAt: now.Add(defaultExpiry), Trace: trace.Parent(ctx),
	}
	acts := did(c, now, "chat.read", string(id), "")
	if err := g.db.Messages.QueueChatRead(ctx, store.QueueAction{Action: action, Acts: acts}); err != nil {
		return one, err
	}
	return g.maybeEmpty(ctx, c, id, chat)
}

// ReadElsewhere records what an account has read on its phone or on another companion.
func (g Sessions) ReadElsewhere(ctx context.Context, r store.ReadElsewhere) error {
	return g.db.Messages.ReadElsewhere(ctx, r)
}

// SetChats records what an account has set for chats.
func (g Sessions) SetChats(ctx context.Context, id postern.DeviceID, list []chats.Setting) error {
	return g.chats().Set(ctx, id, list)
}

// ChangeChat is the request to the live session of a device that changes what is set for a chat.
const ChangeChat = "chat.change"

// ChatInput is what [ChangeChat] needs.
type ChatInput struct {
	ChatID     string `json:"chatId"`
	Archived   *bool  `json:"archived,omitempty"`
	MutedUntil *int64 `json:"mutedUntil,omitempty"` // a postern.Time, whose JSON has no 0
	LabelID    string `json:"labelId,omitempty"`    // of a label that is put on the chat or taken off
	Labeled    bool   `json:"labeled,omitempty"`
	// The newest message of the chat, if it has one.
	LastID     string       `json:"lastId,omitempty"`
	LastFromMe bool         `json:"lastFromMe,omitempty"`
	LastAuthor string       `json:"lastAuthor,omitempty"`
	LastAt     postern.Time `json:"lastAt,omitempty"`
}

// Archive archives a chat, or brings it back. The account's phone shows it, too.
func (g Chats) Archive(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, archived bool,
) (postern.Chat, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Chat{}, err
	}
	return g.change(ctx, c, id, ChatInput{ChatID: chat, Archived: &archived})
}

// Mute mutes a chat until a time, or [postern.MutedForEver]; 0 ends that. The account's phone follows.
func (g Chats) Mute(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, until postern.Time,
) (postern.Chat, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Chat{}, err
	}
	if until > 0 && until <= g.time() {
		return postern.Chat{}, postern.Invalid("/until", "give a time in the future")
	}
	return g.change(ctx, c, id, ChatInput{ChatID: chat, MutedUntil: new(int64(until))})
}

func (g Chats) change(
	ctx context.Context, c access.Caller, id postern.DeviceID, in ChatInput,
) (one postern.Chat, err error) {
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return one, err
	}
	if in.ChatID, err = g.chatIn(ctx, c.Workspace(), id, in.ChatID); err != nil {
		return one, err
	}
	if !postern.IsDirect(in.ChatID) && !postern.IsGroup(in.ChatID) {
		return one, noChat()
	}
	if one, err = g.maybeEmpty(ctx, c, id, in.ChatID); err != nil {
		return one, err
	}
	if m := one.LatestMessage; m != nil {
		in.LastID, in.LastFromMe, in.LastAt = m.NetworkID, m.Direction == postern.Outbound, cmp.Or(m.SentAt, m.CreatedAt)
		if in.LastAuthor = string(m.From); m.FromLID != "" {
			in.LastAuthor = postern.ChatOfLID(m.FromLID)
		}
	}
	_, err = askOnce[struct{}](ctx, g.core, c, id, nil, ChangeChat, func() (ChatInput, error) { return in, nil })
	if err != nil {
		return one, err
	}
	return g.maybeEmpty(ctx, c, id, in.ChatID)
}

// maybeEmpty returns a chat, which may have no messages.
func (g Chats) maybeEmpty(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (postern.Chat, error) {
	one, err := g.chats().Get(ctx, c.Workspace(), id, chat, g.time())
	if postern.ReasonOf(err) == postern.NotFound {
		return postern.Chat{
			DeviceID: id, ChatID: chat, Kind: postern.KindOfChat(chat), Labels: []postern.Label{},
		}, nil
	}
	return one, err
}

// SetLabels records what is known of the labels of an account.
func (g Sessions) SetLabels(ctx context.Context, id postern.DeviceID, c postern.LabelChanges) error {
	return g.chats().SetLabels(ctx, id, c)
}

// ChangeLabel is the request to the live session of a device that makes, changes or deletes a label.
const ChangeLabel = "label.change"

// LabelInput is what [ChangeLabel] needs.
type LabelInput struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Color   int    `json:"color,omitempty"`
	Rest    string `json:"rest,omitempty"` // of a [postern.LabelEdit]
	Deleted bool   `json:"deleted,omitempty"`
}

// LabelChange is a change of a label. Nil keeps what it is.
type LabelChange struct {
	Name  *string
	Color *int
}

// List lists the labels of a device's account, by name.
func (g Labels) List(ctx context.Context, c access.Caller, id postern.DeviceID) ([]postern.Label, error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return nil, err
	}
	known, err := g.known(ctx, c, id)
	list := make([]postern.Label, len(known))
	for i, l := range known {
		list[i] = l.Label
	}
	return list, err
}

// known returns the labels of a device that the caller may see.
func (g Labels) known(ctx context.Context, c access.Caller, id postern.DeviceID) ([]postern.LabelEdit, error) {
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return nil, err
	}
	return g.chats().Labels(ctx, c.Workspace(), id)
}

// find returns a label of a device. It reports NotFound if there is no such label.
func (g Labels) find(
	ctx context.Context, c access.Caller, id postern.DeviceID, label string,
) (one postern.LabelEdit, err error) {
	list, err := g.known(ctx, c, id)
	for _, l := range list {
		if l.ID == label {
			return l, nil
		}
	}
	if err == nil {
		err = postern.Errorf(postern.NotFound, "the device has no such label")
	}
	return one, err
}

// Create makes a label of a device's account. Its phone shows it, too.
func (g Labels) Create(
	ctx context.Context, c access.Caller, id postern.DeviceID, name string, color int, idem *Idempotency,
) (Created[postern.Label], error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return Created[postern.Label]{}, err
	}
	return askOnce[postern.Label](ctx, g.core, c, id, idem, ChangeLabel, func() (in LabelInput, err error) {
		list, err := g.chats().Labels(ctx, c.Workspace(), id)
		if err == nil && len(list) >= postern.MaxLabels {
			err = postern.Errorf(postern.ResourceLimit, "an account can have %d labels; delete one", postern.MaxLabels)
		}
		return LabelInput{ID: postern.NewLabelID(), Name: name, Color: color}, cmp.Or(err, checkLabel(name, color))
	})
}

func checkLabel(name string, color int) error {
	shown := func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
	if strings.TrimSpace(name) != name || !strings.ContainsFunc(name, shown) || !postern.IsPlainText(name) ||
		utf8.RuneCountInString(name) > postern.MaxLabelName {
		return postern.Invalid("/name", "a name has 1 to %d characters of plain text, and no spaces around it",
			postern.MaxLabelName)
	}
	if color < 0 || color >= postern.LabelColors {
		return postern.Invalid("/color", "a color is a number from 0 to %d", postern.LabelColors-1)
	}
	return nil
}

// Change renames a label, or gives it another color.
func (g Labels) Change(
	ctx context.Context, c access.Caller, id postern.DeviceID, label string, change LabelChange,
) (postern.Label, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Label{}, err
	}
	l, err := g.find(ctx, c, id, label)
	if err != nil {
		return l.Label, err
	}
	if change.Name != nil {
		l.Name = *change.Name
	}
	if change.Color != nil {
		l.Color = *change.Color
	}
	if err := checkLabel(l.Name, l.Color); err != nil {
		return l.Label, err
	}
	return g.ask(ctx, c, id, l)
}

// Delete deletes a label, and takes it off all chats.
func (g Labels) Delete(ctx context.Context, c access.Caller, id postern.DeviceID, label string) error {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return err
	}
	l, err := g.find(ctx, c, id, label)
	if err != nil {
		return err
	}
	l.Deleted = true
	_, err = g.ask(ctx, c, id, l)
	return err
}

// ask lets the live session change a label.
func (g Labels) ask(
	ctx context.Context, c access.Caller, id postern.DeviceID, l postern.LabelEdit,
) (postern.Label, error) {
	made, err := askOnce[postern.Label](ctx, g.core, c, id, nil, ChangeLabel, func() (LabelInput, error) {
		return LabelInput{ID: l.ID, Name: l.Name, Color: l.Color, Rest: l.Rest, Deleted: l.Deleted}, nil
	})
	return made.Value, err
}

// Put puts a label on a chat, or takes it off. The account's phone shows it, too.
func (g Labels) Put(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat, label string, on bool,
) (postern.Chat, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Chat{}, err
	}
	if _, err := g.find(ctx, c, id, label); err != nil {
		return postern.Chat{}, err
	}
	return Chats(g).change(ctx, c, id, ChatInput{ChatID: chat, LabelID: label, Labeled: on})
}

// The requests about channels that the live session of a device carries out.
const (
	ListChannels    = "channel.list"
	FollowChannel   = "channel.follow"
	UnfollowChannel = "channel.unfollow"
)

// ChannelInput is what these requests need.
type ChannelInput struct {
	ChatID string `json:"chatId,omitempty"`
	Code   string `json:"code,omitempty"` // of the address on the web, in place of the chat
}

// List asks the network which channels the account of a device follows.
func (g Channels) List(ctx context.Context, c access.Caller, id postern.DeviceID) ([]postern.Channel, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return nil, err
	}
	return askChannel[[]postern.Channel](ctx, g, c, id, ListChannels, nil)
}

// Follow lets the account of a device follow a channel, and returns the channel. It may be repeated.
func (g Channels) Follow(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (postern.Channel, error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return postern.Channel{}, err
	}
	return askChannel[postern.Channel](ctx, g, c, id, FollowChannel, &chat)
}

// FollowInvite is Follow for a channel that is named by its address on the web, or by the code at the end of it.
func (g Channels) FollowInvite(
	ctx context.Context, c access.Caller, id postern.DeviceID, invite string, idem *Idempotency,
) (Created[postern.Channel], error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return Created[postern.Channel]{}, err
	}
	return askOnce[postern.Channel](ctx, g.core, c, id, idem, FollowChannel, func() (ChannelInput, error) {
		code, err := postern.ParseInvite(invite)
		return ChannelInput{Code: code}, err
	})
}

// Unfollow ends that the account of a device follows a channel.
func (g Channels) Unfollow(ctx context.Context, c access.Caller, id postern.DeviceID, chat string) error {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return err
	}
	_, err := askChannel[struct{}](ctx, g, c, id, UnfollowChannel, &chat)
	return err
}

// askChannel hands a request about channels, or about one of them, to the live session of a device, and waits for the
// outcome.
func askChannel[T any](
	ctx context.Context, g Channels, c access.Caller, id postern.DeviceID, kind string, chat *string,
) (answer T, err error) {
	made, err := askOnce[T](ctx, g.core, c, id, nil, kind, func() (in ChannelInput, err error) {
		if chat == nil {
			return in, nil
		}
		in.ChatID, err = postern.ParseChat(*chat)
		if err != nil || !postern.IsChannel(in.ChatID) {
			return in, postern.Errorf(postern.NotFound, "there is no such channel; its id begins with channel:")
		}
		return in, nil
	})
	return made.Value, err
}

// Known returns the name of a channel, and what the account of a device is in it, as they were last read; "" if they
// are not known.
func (g Channels) Known(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (name, role string, err error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return "", "", err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return "", "", err
	}
	return channels.Of(g.db).Get(ctx, c.Workspace(), id, chat)
}

// NoteChannels stores channels as a device's account knows them.
func (g Sessions) NoteChannels(ctx context.Context, id postern.DeviceID, list []postern.Channel) error {
	return channels.Of(g.db).Save(ctx, id, list)
}

// UnnamedChannels returns channels of a device that have messages and are not known.
func (g Sessions) UnnamedChannels(ctx context.Context, id postern.DeviceID, most int) ([]string, error) {
	return channels.Of(g.db).Unnamed(ctx, id, most)
}

// SandboxChannel is a channel of simulated phones.
type SandboxChannel struct {
	ChatID string `json:"chatId" doc:"The chat of the channel." example:"channel:120363041234567890"`
	Name   string `json:"name" doc:"Its name." example:"Opening hours"`
	Invite string `json:"invite" doc:"The code by which it is followed." example:"0029VaJt3mHkq0s7c9oWf2"`
}

// CreateChannel creates a channel of a simulated phone. The device's account may be an administrator of it.
func (g SandboxPhones) CreateChannel(
	ctx context.Context, c access.Caller, id postern.DeviceID, owner, name string, admin bool,
) (SandboxChannel, error) {
	d, network, err := g.phone(ctx, c, id)
	if err != nil {
		return SandboxChannel{}, err
	}
	if owner, err = postern.ParsePhone(owner); err != nil {
		return SandboxChannel{}, postern.Invalid("/from", "%v", err)
	}
	return network.CreateChannel(string(d.PhoneNumber), owner, name, admin)
}

// checkStatus refuses what a simulated contact cannot post as status.
func checkStatus(in SandboxInbound) error {
	switch {
	case !in.Status:
		return nil
	case in.Group != "" || in.Channel != "":
		return postern.Invalid("/status", "a status post is in no group and in no channel")
	case in.ReplyTo != "":
		return postern.Invalid("/replyTo", "a status post cannot reply to another message")
	}
	return nil
}

// checkPost returns the channel in which a simulated contact posts, in its usual form; "" for none.
func checkPost(in SandboxInbound) (string, error) {
	if in.Channel == "" {
		return "", nil
	}
	chat, err := postern.ParseChat(in.Channel)
	switch {
	case err != nil || !postern.IsChannel(chat):
		return "", postern.Invalid("/channel", "this is not the chat of a channel, such as channel:120363041234567890")
	case in.Group != "":
		return "", postern.Invalid("/group", "name a group or a channel, and not both")
	case in.ReplyTo != "":
		return "", postern.Invalid("/replyTo", "a post in a channel cannot reply to another message")
	case in.Content.Kind != "" && in.Content.Kind != postern.KindText && !in.Content.Kind.HasMedia():
		return "", postern.Invalid("/type", "simulated phones post texts and files in channels")
	}
	return chat, nil
}
