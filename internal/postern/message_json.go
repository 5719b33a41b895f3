package postern

import (
	"encoding/json"
	"math"
)

// MessageObject is the JSON form of a [Message]: in responses, and in the events
// about its status.
type MessageObject struct {
	ID          MessageID         `json:"id" doc:"Opaque id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	DeviceID    DeviceID          `json:"deviceId" doc:"The device that sent or received the message." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Direction   string            `json:"direction" enum:"inbound,outbound" doc:"inbound: from a contact. outbound: from the account." example:"outbound"`
	Type        Kind              `json:"type" enum:"text,image,video,audio,voice,document,sticker,location,contact,poll,liveLocation,event,call,unsupported" doc:"Kind of the message. Unsupported kinds can be received, but their content is not shown." example:"text"`
	ChatID      string            `json:"chatId" doc:"The chat; usable as \"to\"." example:"+15551234567"`
	From        Maybe             `json:"from" nullable:"true" doc:"Sender's number; null while the network hides it, and for a post in a channel." example:"+15550001111"`
	To          Maybe             `json:"to" nullable:"true" doc:"Recipient's number." example:"+15551234567"`
	ContactID   ContactID         `json:"contactId,omitempty" doc:"The contact who wrote the message; absent from messages of the account, and from those that are older than the list of contacts." example:"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body        string            `json:"body" doc:"The text, or the caption of a file; at most 65,536 characters." example:"Hello"`
	Truncated   bool              `json:"truncated,omitzero" doc:"True if a received text was longer than the limit and was cut; otherwise absent." example:"true"`
	Media       *Media            `json:"media,omitempty" doc:"The file of a message that carries one; absent from other kinds."`
	ReplyTo     Maybe             `json:"replyTo" nullable:"true" doc:"The message that this one replies to."`
	Status      MessageStatus     `json:"status" enum:"scheduled,queued,sending,sent,delivered,read,played,failed,expired,canceled,received" doc:"How far the message has come. It only moves forward. Inbound messages are received." example:"queued"`
	Error       *Failure          `json:"error" nullable:"true" doc:"Why the message failed, or could not be read."`
	NetworkID   string            `json:"networkId" doc:"The id the message has on the network, chosen before the first attempt." example:"3EB0A1B2C3D4E5F60718"`
	Source      string            `json:"source" enum:"api,phone,companion,contact" doc:"Who wrote the message." example:"api"`
	Metadata    map[string]string `json:"metadata" doc:"The caller's own labels."`
	CreatedAt   Time              `json:"createdAt" format:"date-time" nullable:"true" doc:"When the message was accepted or recorded." example:"2026-11-21T09:00:00.000Z"`
	SentAt      Time              `json:"sentAt" format:"date-time" nullable:"true" doc:"When the message was sent, by the network's clock." example:"2026-11-21T09:00:00.000Z"`
	DeliveredAt Time              `json:"deliveredAt" format:"date-time" nullable:"true" doc:"When it reached the recipient's phone." example:"2026-11-21T09:00:00.000Z"`
	ReadAt      Time              `json:"readAt" format:"date-time" nullable:"true" doc:"When the recipient read it." example:"2026-11-21T09:00:00.000Z"`
	PlayedAt    Time              `json:"playedAt" format:"date-time" nullable:"true" doc:"When the recipient played it; only for kinds that are played." example:"2026-11-21T09:00:00.000Z"`
	ExpiresAt   Time              `json:"expiresAt" format:"date-time" nullable:"true" doc:"When an outbound message expires." example:"2026-11-22T09:00:00.000Z"`

	SendAt Time `json:"sendAt,omitzero" format:"date-time" doc:"When a scheduled message is to be sent; absent if it was not scheduled." example:"2026-11-22T08:00:00.000Z"`

	Priority Priority `json:"priority,omitempty" enum:"high,low" doc:"The priority of the message; absent if it is normal." example:"high"`

	Position *int `json:"position,omitempty" minimum:"0" doc:"How many messages of the device are expected to leave before this one, counted to 10,000 in each priority; 0 means that it is next. Only in GET /v1/messages/{id}, and only while the message is queued." example:"0"`

	History bool `json:"history,omitzero" doc:"True if the message is from before the device was linked, or was asked for later; otherwise absent. It caused no event, and its createdAt is its sentAt." example:"true"`

	Tally []Tally `json:"tally,omitempty" nullable:"false" doc:"The votes in a poll, counted by option; absent if there are none."`

	Extra
	ReceivedOnly
	State
}

// InOrder returns m with times that follow each other. The network's clock has only whole
// seconds, so that a message could seem to be sent before it was accepted. The times of a
// message that was not sent through the API stay as the network gave them.
func (m Message) InOrder() Message {
	if m.Source != FromAPI {
		return m
	}
	last := m.CreatedAt
	for _, at := range []*Time{&m.SentAt, &m.DeliveredAt, &m.ReadAt, &m.PlayedAt} {
		if *at != 0 {
			*at = max(*at, last)
			last = *at
		}
	}
	return m
}

// Object returns the JSON form of m.
func (m Message) Object() MessageObject {
	m = m.InOrder()
	return MessageObject{
		ID: m.ID, DeviceID: m.DeviceID, Direction: m.Direction, Type: m.Content.Kind, ChatID: m.ChatID, From: m.From,
		To: m.To, ContactID: m.sender(),
		Body: m.Content.Text, Truncated: m.Content.Truncated, Media: m.Content.Media, ReplyTo: m.ReplyTo,
		Status: m.Status, Error: m.Error,
		NetworkID: m.NetworkID,
		Source:    m.Source,
		Metadata:  m.Metadata, CreatedAt: m.CreatedAt, SentAt: m.SentAt, DeliveredAt: m.DeliveredAt, ReadAt: m.ReadAt,
		PlayedAt: m.PlayedAt, ExpiresAt: m.ExpiresAt, Extra: m.Content.Extra, ReceivedOnly: m.Content.ReceivedOnly,
		State:  m.State,
		SendAt: m.SendAt, Priority: m.Priority, Position: m.Position, Tally: m.TallyOf(), History: m.History,
	}
}

// sender returns the contact who wrote m; "" if the account did.
func (m Message) sender() ContactID {
	if m.Direction == Outbound {
		return ""
	}
	return m.ContactID
}

// message returns the message of which o is the JSON form.
func (o MessageObject) message() Message {
	return Message{
		ID: o.ID, DeviceID: o.DeviceID, Direction: o.Direction,
		Content: Content{o.Type, o.Body, o.Truncated, o.Media, o.Extra, o.ReceivedOnly},
		ChatID:  o.ChatID,
		From:    o.From, To: o.To, ContactID: o.ContactID, ReplyTo: o.ReplyTo, Status: o.Status, Error: o.Error, NetworkID: o.NetworkID,
		Source:   o.Source,
		Metadata: o.Metadata, CreatedAt: o.CreatedAt, SentAt: o.SentAt, DeliveredAt: o.DeliveredAt, ReadAt: o.ReadAt,
		PlayedAt: o.PlayedAt, ExpiresAt: o.ExpiresAt, SendAt: o.SendAt, Priority: o.Priority, Position: o.Position, State: o.State,
		History: o.History,
	}
}

// MarshalJSON returns the JSON of the message's object.
func (m Message) MarshalJSON() ([]byte, error) { return EncodeJSON(m.Object()) }

// Of the JSON of a message.
const (
	escapedByte = 6       // bytes that one byte of a text takes at most, as in \u0001
	membersJSON = 4 << 10 // bytes of the names, ids and times at most
)

// JSONBound returns a number of bytes that the JSON of m does not exceed. It takes less
// time than encoding m, and is too large for most messages.
func (m Message) JSONBound() int {
	if !m.Content.IsPlain() || m.Error != nil || !m.State.isEmpty() {
		return math.MaxInt32 // for those that are rare, encode
	}
	n := len(m.Content.Text) + len(m.ChatID) + len(m.ReplyTo) + len(m.NetworkID)
	for k, v := range m.Metadata {
		n += len(k) + len(v) + len(`"":"",`)
	}
	return membersJSON + escapedByte*n
}

// UnmarshalJSON reads a message's object. Members that are not part of it, such
// as the workspace, become zero.
func (m *Message) UnmarshalJSON(b []byte) error {
	var o MessageObject
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	*m = o.message()
	return nil
}

// Arrival is the object of message.received, message.echo and
// message.undecryptable: who wrote what.
type Arrival struct {
	ID        MessageID `json:"id" doc:"Opaque id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	From      string    `json:"from,omitempty" doc:"Sender's number; absent while the network hides it, and for a post in a channel, whose chatId begins with channel:." example:"+15551234567"`
	Body      string    `json:"body" doc:"The text, or the caption of a file; at most 65,536 characters." example:"Hello"`
	ChatID    string    `json:"chatId" doc:"The chat; usable as \"to\"." example:"+15551234567"`
	Type      Kind      `json:"type" enum:"text,image,video,audio,voice,document,sticker,location,contact,poll,liveLocation,event,call,unsupported" doc:"Kind of the message." example:"text"`
	To        string    `json:"to,omitempty" doc:"Recipient's number, of a message that the account sent." example:"+15550001111"`
	Media     *Media    `json:"media,omitempty" doc:"The file of a message that carries one; absent from other kinds."`
	ReplyTo   Maybe     `json:"replyTo" nullable:"true" doc:"The message that this one replies to."`
	FromName  string    `json:"fromName,omitempty" doc:"The sender's own name on the network." example:"Ada"`
	FromLID   string    `json:"fromLid,omitempty" doc:"Identifies the sender while the network hides the number." example:"lid:123456789012345"`
	ContactID ContactID `json:"contactId,omitempty" doc:"The contact who wrote the message, or who got it in a direct chat." example:"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Source    string    `json:"source" enum:"api,phone,companion,contact" doc:"Who wrote the message." example:"contact"`
	Error     *Failure  `json:"error,omitempty" doc:"Why the message could not be read; only in message.undecryptable."`
	SentAt    Time      `json:"sentAt" format:"date-time" nullable:"true" doc:"When the message was sent, by the network's clock." example:"2026-11-21T09:00:00.000Z"`

	Truncated bool `json:"truncated,omitzero" doc:"True if the text was longer than the limit and was cut; otherwise absent." example:"true"`

	Extra
	ReceivedOnly
}

func (m Message) arrival() Arrival {
	r := Arrival{
		ID: m.ID, From: string(m.From), Body: m.Content.Text, ChatID: m.ChatID, Type: m.Content.Kind, To: string(m.To),
		ReplyTo: m.ReplyTo, FromName: m.FromName, ContactID: m.ContactID, Source: m.Source, SentAt: m.SentAt,
		Error: m.Error, Truncated: m.Content.Truncated, Media: m.Content.Media, Extra: m.Content.Extra,
		ReceivedOnly: m.Content.ReceivedOnly,
	}
	if m.FromLID != "" {
		r.FromLID = ChatOfLID(m.FromLID)
	}
	return r
}
