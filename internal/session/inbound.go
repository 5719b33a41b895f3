package session

import (
	"context"
	"fmt"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/chats"
	"postern/internal/trace"
)

// Update stores what the network reports. It returns nil only if the update is
// durable, because the driver acknowledges it next.
func (h *host) Update(ctx context.Context, u network.Update) error {
	u, err := h.inOurChat(ctx, u)
	if err != nil {
		return err
	}
	switch u := u.(type) {
	case network.Typing, network.Seen:
		h.shown(u)
		return nil
	case network.Live:
		return h.connected(ctx, u)
	case network.Receipt:
		return h.e.g.Sessions.Confirm(ctx, h.d, gateway.Receipt{
			NetworkIDs: u.NetworkIDs, Chats: u.Chats, Member: u.Member, Number: u.Number, Status: u.Status,
			At: postern.TimeOf(u.At),
		})
	case network.Inbound:
		return h.receive(ctx, inbound(h.d, u))
	case network.Undecryptable:
		return h.receive(ctx, undecryptable(h.d, u))
	case network.Echo:
		return h.receive(ctx, echo(h.d, u))
	case network.Disappearing:
		return h.disappearing(ctx, u)
	case network.Offered:
		return h.offered(ctx, u)
	case network.HistoryOffered:
		return h.historyOffered(ctx, u)
	case network.Starred:
		return h.e.g.Sessions.Starred(ctx, h.d, u.ChatID, u.About, u.On, postern.TimeOf(u.At))
	case network.ReadElsewhere:
		return h.e.g.Sessions.ReadElsewhere(ctx, store.ReadElsewhere{
			DeviceID: h.d.ID, ChatID: u.ChatID, NetworkIDs: u.NetworkIDs,
		})
	case network.ChatsSet:
		return h.e.g.Sessions.SetChats(ctx, h.d.ID, chatSettings(u.Chats))
	case network.LabelsSet:
		return h.e.g.Sessions.SetLabels(ctx, h.d.ID, u.LabelChanges)
	case network.AddressBook:
		return h.e.g.Sessions.SetBook(ctx, h.d.ID, u.AddressBook)
	case network.ChannelFollowed:
		return h.e.g.Sessions.NoteChannels(ctx, h.d.ID, []postern.Channel{u.Channel})
	case network.GroupUpdate:
		return h.groupNotice(ctx, u.GroupNotice)
	case network.Renamed:
		return h.e.g.Sessions.SetDisplayName(ctx, h.d, u.Name)
	case network.OtherForm:
		return h.e.g.Sessions.AddForm(ctx, h.d, u.OtherForm)
	case network.Identified:
		return h.e.g.Sessions.Identify(ctx, h.d, u.People)
	case network.PhoneSeen:
		return h.phoneSeen(ctx, postern.TimeOf(u.At))
	case network.NewChats:
		return h.e.g.Sessions.SetNewChats(ctx, h.d.ID, postern.NewChats{Allowed: u.Allowed, Until: postern.TimeOf(u.Until)})
	case network.Code, network.PasskeyWanted, network.CompareCode, network.Scanned, network.Paired:
	}
	return fmt.Errorf("a session reported %T", u)
}

// inOurChat returns an update with the chat in which we have its messages: the network may name a person by a LID whose
// number another device knows.
func (h *host) inOurChat(ctx context.Context, u network.Update) (network.Update, error) {
	var err error
	switch v := u.(type) {
	case network.Inbound:
		v.ChatID, v.From, err = h.ourChat(ctx, v.ChatID, v.From)
		return v, err
	case network.Undecryptable:
		v.ChatID, v.From, err = h.ourChat(ctx, v.ChatID, v.From)
		return v, err
	case network.Echo:
		v.ChatID, v.To, err = h.ourChat(ctx, v.ChatID, v.To)
		return v, err
	case network.Starred:
		v.ChatID, _, err = h.ourChat(ctx, v.ChatID, "")
		return v, err
	case network.Disappearing:
		v.ChatID, _, err = h.ourChat(ctx, v.ChatID, "")
		return v, err
	case network.ReadElsewhere:
		v.ChatID, _, err = h.ourChat(ctx, v.ChatID, "")
		return v, err
	case network.ChatsSet:
		for i := range v.Chats {
			chat, _, err := h.ourChat(ctx, v.Chats[i].ChatID, "")
			if err != nil {
				return v, err
			}
			v.Chats[i].ChatID = chat
		}
		return v, nil
	case network.LabelsSet:
		for i := range v.Chats {
			if v.Chats[i].ChatID, _, err = h.ourChat(ctx, v.Chats[i].ChatID, ""); err != nil {
				return v, err
			}
		}
		return v, nil
	case network.Receipt:
		if len(v.Chats) == 1 {
			chat, _, err := h.ourChat(ctx, v.Chats[0], "")
			if chat != v.Chats[0] {
				v.Chats = append(v.Chats, chat)
			}
			return v, err
		}
	}
	return u, nil
}

// ourChat returns our name of a chat, and the number of the person, which the network may hide.
func (h *host) ourChat(ctx context.Context, chat, number string) (ours, known string, err error) {
	ours, err = h.e.g.Sessions.ChatOf(ctx, h.d, chat)
	if err == nil && ours != chat {
		number = postern.NumberOfChat(ours)
	}
	return ours, number, err
}

func chatSettings(list []network.ChatSetting) []chats.Setting {
	out := make([]chats.Setting, len(list))
	for i, c := range list {
		out[i] = chats.Setting{
			ChatID: c.ChatID, Archived: c.Archived, MutedUntil: c.MutedUntil, ReadUntil: postern.TimeOf(c.ReadUntil),
		}
	}
	return out
}

func (h *host) groupNotice(ctx context.Context, n postern.GroupNotice) error {
	d, err := h.settings.now(ctx)
	if err != nil {
		return err
	}
	record := func() error { return h.e.g.Sessions.NoteGroup(ctx, d, n) }
	l := h.liveNow()
	if l == nil {
		return record()
	}
	if n.Entered || n.Unclear {
		l.e.running.Go(func() { asked{l}.reread(n) })
	}
	return l.notices.record(record)
}

// phonePrecision is how exactly it is stored when a phone was last seen.
const phonePrecision = time.Hour

// phoneSeen records that the phone of the account was seen, unless it was seen shortly before.
func (h *host) phoneSeen(ctx context.Context, at postern.Time) error {
	d, err := h.settings.now(ctx)
	if err != nil || at < d.PhoneSeenAt.Add(phonePrecision) {
		return err
	}
	return h.e.g.Sessions.PhoneSeen(ctx, d.ID, at)
}

// disappearing stores the timer of a chat, which messages to the chat carry from now on.
func (h *host) disappearing(ctx context.Context, u network.Disappearing) error {
	timer := store.Timer{Seconds: u.Timer.Seconds, Since: postern.TimeOf(u.Timer.Since)}
	if err := h.e.db.Chats.SetTimer(ctx, h.d.ID, u.ChatID, timer); err != nil {
		return err
	}
	if l := h.liveNow(); l != nil {
		l.forgetTimers()
	}
	return nil
}

// arrival is a message to record, with the event that reports it.
type arrival struct {
	message postern.Message
	sender  string // with the network id, what identifies an inbound message
	event   postern.EventType
	quoteOf string // network id of the message to which it replies; "" for none
	file    network.Ref
	better  string    // network id of the picture or video of which it is a better copy; "" for none
	arrived time.Time // at the socket; zero if unknown
}

func inbound(d postern.Device, u network.Inbound) arrival {
	m := received(d, u.NetworkID, u.ChatID, u.Content, u.At)
	m.From, m.FromLID, m.FromName, m.About = postern.Maybe(u.From), u.FromLID, u.FromName, u.About
	m.FromBusiness = u.BusinessName
	event := postern.MessageReceived
	if u.Content.Kind == postern.KindCall {
		event = postern.CallReceived
	}
	return arrival{m, u.Sender, event, u.QuoteOf, u.File, u.BetterOf, u.Arrived}
}

func undecryptable(d postern.Device, u network.Undecryptable) arrival {
	m := received(d, u.NetworkID, u.ChatID, postern.Unsupported(""), u.At)
	m.From, m.FromLID = postern.Maybe(u.From), u.FromLID
	m.Error = &postern.Failure{Code: u.Why, Detail: whyUnread(u.Why)}
	return arrival{m, u.Sender, postern.MessageUndecryptable, "", nil, "", time.Time{}}
}

// whyUnread explains why a message could not be read.
func whyUnread(why postern.FailureCode) string {
	switch why {
	case postern.DecryptionPanicked:
		return "its decryption failed unexpectedly three times; ask the sender to write again"
	case postern.MalformedMessage:
		return "the network sent it in a malformed envelope; ask the sender to write again"
	case postern.MalformedContent:
		return "it was decrypted, but its content is malformed; ask the sender to write again"
	default:
		return "it could not be decrypted; the sender's phone was asked to send it again"
	}
}

func echo(d postern.Device, u network.Echo) arrival {
	m := received(d, u.NetworkID, u.ChatID, u.Content, u.At)
	m.Direction, m.Status, m.Source = postern.Outbound, postern.Sent, postern.FromPhone
	if u.Companion {
		m.Source = postern.FromCompanion
	}
	m.From, m.To, m.About = d.PhoneNumber, postern.Maybe(u.To), u.About
	return arrival{m, "", postern.MessageEcho, u.QuoteOf, u.File, u.BetterOf, u.Arrived}
}

// received returns a message from a contact, without the contact's names.
func received(d postern.Device, networkID, chat string, c postern.Content, at time.Time) postern.Message {
	return postern.Message{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound, ChatID: chat, To: d.PhoneNumber,
		Content: c, Status: postern.Received, NetworkID: networkID,
		Source: postern.FromContact, SentAt: postern.TimeOf(at),
	}
}

// wanted reports whether the owner wants to receive what has arrived.
func (a arrival) wanted(r postern.Receive) bool {
	switch {
	case a.event == postern.CallReceived:
		return r.Calls
	case postern.IsGroup(a.message.ChatID):
		return r.Groups
	case postern.IsChannel(a.message.ChatID):
		return r.Channels
	case a.message.ChatID == postern.StatusChat:
		return r.Status
	default:
		return r.Direct
	}
}

// fileFor returns the file of what has arrived, as the owner wants it.
func (a arrival) fileFor(r postern.Receive) gateway.ArrivedFile {
	f := gateway.ArrivedFile{Source: a.file, Mode: r.Media}
	if a.message.Content.ViewOnce && !r.ViewOnce {
		f.Source = nil
	}
	return f
}

// receive records a message or a call. If the owner does not want it, it is acknowledged and not recorded.
func (h *host) receive(ctx context.Context, a arrival) error {
	ctx, span := h.e.tracer.StartAt(ctx, "receive", a.arrived)
	defer span.End()
	span.Set("device", string(h.d.ID))
	a.message.Trace = trace.Parent(ctx)
	err := h.record(ctx, a)
	if err != nil {
		span.Fail(string(postern.ReasonOf(err)))
	}
	return err
}

func (h *host) record(ctx context.Context, a arrival) error {
	d, err := h.settings.now(ctx)
	if err != nil || !a.wanted(d.Receive) {
		return err
	}
	if ours, err := h.isOurPost(ctx, d, a.message); err != nil || ours {
		return err
	}
	if a.quoteOf != "" {
		if a.message.ReplyTo, err = h.e.g.Sessions.Quoted(ctx, d, a.message.ChatID, a.quoteOf); err != nil {
			return err
		}
	}
	if a.better != "" {
		if a.message.Content.HDOf, err = h.e.g.Sessions.Quoted(ctx, d, a.message.ChatID, a.better); err != nil {
			return err
		}
	}
	err = h.e.g.Sessions.Receive(ctx, a.message, a.sender, a.event, a.fileFor(d.Receive))
	if err == nil && !a.arrived.IsZero() {
		h.e.received(time.Since(a.arrived))
	}
	if l := h.liveNow(); err == nil && l != nil {
		l.nameChannel(a.message.ChatID)
		l.answered(a.message.ChatID)
	}
	return err
}

// isOurPost reports whether a post of a channel is one that was sent here: the network gives posts to everybody who
// follows the channel, and does not say who wrote them.
func (h *host) isOurPost(ctx context.Context, d postern.Device, m postern.Message) (bool, error) {
	if !postern.IsChannel(m.ChatID) || m.Direction != postern.Inbound || m.About != "" {
		return false, nil
	}
	sent, ok, err := h.e.db.Messages.ByNetworkID(ctx, d.ID, m.NetworkID)
	return ok && sent.ChatID == m.ChatID, err
}

// liveNow returns the live session of the device; nil if there is none.
func (h *host) liveNow() *liveSession {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	return h.e.live[h.d.ID]
}
