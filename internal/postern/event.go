package postern

import "strconv"

// EventType names a kind of event.
type EventType string

// The event types of this release.
const (
	MessageReceived      EventType = "message.received"
	MessageEcho          EventType = "message.echo"
	MessageUndecryptable EventType = "message.undecryptable"
	MessageSent          EventType = "message.sent"
	MessageDelivered     EventType = "message.delivered"
	MessageRead          EventType = "message.read"
	MessagePlayed        EventType = "message.played"
	MessageFailed        EventType = "message.failed"
	MessageExpired       EventType = "message.expired"
	MessageCanceled      EventType = "message.canceled"
	MessageReaction      EventType = "message.reaction"
	MessageEdited        EventType = "message.edited"
	MessageDeleted       EventType = "message.deleted"
	MessagePinned        EventType = "message.pinned"
	MessageUnpinned      EventType = "message.unpinned"
	MessageStarred       EventType = "message.starred"
	MessageUnstarred     EventType = "message.unstarred"
	PollVote             EventType = "poll.vote"
	MediaReadyEv         EventType = "media.ready"
	MediaFailedEv        EventType = "media.failed"
	CallReceived         EventType = "call.received"

	ContactIdentified EventType = "contact.identified"

	GroupJoined       EventType = "group.joined"
	GroupLeft         EventType = "group.left"
	GroupUpdated      EventType = "group.updated"
	GroupParticipants EventType = "group.participants"

	DeviceLinked       EventType = "device.linked"
	DeviceConnected    EventType = "device.connected"
	DeviceDisconnected EventType = "device.disconnected"
	DeviceRestricted   EventType = "device.restricted"
	DeviceLoggedOutEv  EventType = "device.logged_out"
	DeviceBanned       EventType = "device.banned"
	DeviceConflict     EventType = "device.conflict"
	DeviceUnlinked     EventType = "device.unlinked"
	DevicePaused       EventType = "device.paused"
	DeviceLinking      EventType = "device.linking"
	DeviceLimited      EventType = "device.limited"
	DevicePhoneUnseen  EventType = "device.phone_unseen"
	DeviceUnlimited    EventType = "device.unlimited"

	WebhookVerification EventType = "webhook.verification"
	WebhookTest         EventType = "webhook.test"
	WebhookDisabled     EventType = "webhook.disabled"
)

// EventTypes lists the types to which an endpoint can subscribe.
func EventTypes() []EventType {
	return []EventType{
		MessageReceived, MessageEcho, MessageUndecryptable, MessageSent, MessageDelivered, MessageRead, MessagePlayed,
		MessageFailed,
		MessageExpired, MessageCanceled, MessageReaction, MessageEdited, MessageDeleted, MessagePinned,
		MessageUnpinned, MessageStarred, MessageUnstarred, PollVote,
		MediaReadyEv, MediaFailedEv, CallReceived, ContactIdentified,
		GroupJoined, GroupLeft, GroupUpdated, GroupParticipants,
		DeviceLinked, DeviceConnected, DeviceDisconnected, DeviceRestricted, DeviceLoggedOutEv, DeviceBanned,
		DeviceConflict, DeviceUnlinked,
		DevicePaused, DeviceLinking, DeviceLimited, DeviceUnlimited, DevicePhoneUnseen,
		WebhookDisabled,
	}
}

// Event is what a workspace's backend is told: a subject (a message, a call, a contact, a group or a device) in an
// envelope. The store completes the envelope with the device's sequence number and a
// time that never decreases along the sequence.
type Event struct {
	ID          EventID
	WorkspaceID WorkspaceID
	DeviceID    DeviceID
	Type        EventType
	Subject     string    // member that holds the object: "message", "call", "contact", "group" or "device"
	Object      []byte    // the object, as JSON
	ChatID      string    // of the chat it belongs to; "" for none
	MessageID   MessageID // that it reports, or the id of the contact that it is about; "" for none
	Trace       string    // of the message; not stored with the event, but with its deliveries
}

// EventHead is a recorded event without its envelope.
type EventHead struct {
	ID   EventID
	Type EventType
	At   Time // when it was recorded
}

// Envelope encodes the event as JSON: the bytes that every attempt of every delivery
// carries. Without a Subject, it contains only the fields that name the event.
func (e Event) Envelope(sequence int64, at Time) []byte {
	b := make([]byte, 0, len(e.Object)+256)
	b = append(
		b,
		`{"eventId":"`+string(e.ID)+`","type":"`+string(e.Type)+`","timestamp":"`+at.String()+`","deviceId":"`+string(
			e.DeviceID)+`","workspaceId":"`+string(e.WorkspaceID)+`","sequence":`...)
	b = strconv.AppendInt(b, sequence, 10)
	if e.Subject != "" {
		b = append(b, `,"`+e.Subject+`":`...)
		b = append(b, e.Object...)
	}
	return append(b, '}')
}

// ReceivedCall is the object of call.received.
type ReceivedCall struct {
	ID        string    `json:"id" doc:"Id of the call on the network." example:"3EB0A1B2C3D4E5F60718"`
	MessageID MessageID `json:"messageId" doc:"The message by which lists and conversations show the call." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID    string    `json:"chatId" doc:"The chat with the contact; usable as \"to\"." example:"+15551234567"`
	From      string    `json:"from,omitempty" doc:"Number of the contact; absent while the network hides it." example:"+15551234567"`
	FromLID   string    `json:"fromLid,omitempty" doc:"Identifies the contact while the network hides the number." example:"lid:123456789012345"`
	ContactID ContactID `json:"contactId,omitempty" doc:"The contact who called." example:"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	At        Time      `json:"at" format:"date-time" nullable:"true" doc:"When the contact called, by the network's clock." example:"2026-11-21T09:00:00.000Z"`

	Call
}

// callEvent returns the event about a call.
func (m Message) callEvent() (Event, error) {
	o := ReceivedCall{ID: m.NetworkID, MessageID: m.ID, ChatID: m.ChatID, From: string(m.From), At: m.SentAt, ContactID: m.ContactID}
	if m.FromLID != "" {
		o.FromLID = ChatOfLID(m.FromLID)
	}
	if m.Content.Call != nil {
		o.Call = *m.Content.Call
	}
	b, err := EncodeJSON(o)
	return Event{
		ID: NewEventID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Type: CallReceived, Subject: "call", Object: b,
		ChatID: m.ChatID, MessageID: m.ID, Trace: m.Trace,
	}, err
}

// Event returns an event about the message. Events about its arrival contain an
// [Arrival], that about a call a [ReceivedCall], and all others a [MessageObject].
func (m Message) Event(t EventType) (Event, error) {
	if t == CallReceived {
		return m.callEvent()
	}
	var object any = m.Object()
	if t == MessageReceived || t == MessageEcho || t == MessageUndecryptable {
		object = m.arrival()
	}
	b, err := EncodeJSON(object)
	return Event{
		ID: NewEventID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Type: t, Subject: "message", Object: b,
		ChatID: m.ChatID, MessageID: m.ID, Trace: m.Trace,
	}, err
}

// Event returns an event about the device.
func (d Device) Event(t EventType) (Event, error) {
	b, err := EncodeJSON(d)
	return Event{
		ID: NewEventID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Type: t, Subject: "device",
		Object: b,
	}, err
}
