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
	PollVote             EventType = "poll.vote"
	MediaReadyEv         EventType = "media.ready"
	MediaFailedEv        EventType = "media.failed"

	DeviceLinked       EventType = "device.linked"
	DeviceConnected    EventType = "device.connected"
	DeviceDisconnected EventType = "device.disconnected"
	DeviceRestricted   EventType = "device.restricted"
	DeviceLoggedOutEv  EventType = "device.logged_out"
	DeviceBanned       EventType = "device.banned"
	DeviceConflict     EventType = "device.conflict"
	DeviceUnlinked     EventType = "device.unlinked"
	DevicePaused       EventType = "device.paused"

	WebhookVerification EventType = "webhook.verification"
	WebhookTest         EventType = "webhook.test"
	WebhookDisabled     EventType = "webhook.disabled"
)

// EventTypes lists the types to which an endpoint can subscribe.
func EventTypes() []EventType {
	return []EventType{
		MessageReceived, MessageEcho, MessageUndecryptable, MessageSent, MessageDelivered, MessageRead, MessagePlayed,
		MessageFailed,
		MessageExpired, MessageCanceled, MessageReaction, MessageEdited, MessageDeleted, PollVote,
		MediaReadyEv, MediaFailedEv,
		DeviceLinked, DeviceConnected, DeviceDisconnected, DeviceRestricted, DeviceLoggedOutEv, DeviceBanned,
		DeviceConflict, DeviceUnlinked,
		DevicePaused,
		WebhookDisabled,
	}
}

// Event is what a workspace's backend is told: a subject (a message or a device) in an
// envelope. The store completes the envelope with the device's sequence number and a
// time that never decreases along the sequence.
type Event struct {
	ID          EventID
	WorkspaceID WorkspaceID
	DeviceID    DeviceID
	Type        EventType
	Subject     string    // member that holds the object: "message" or "device"
	Object      []byte    // the object, as JSON
	ChatID      string    // of the chat it belongs to; "" for none
	MessageID   MessageID // that it reports; "" for none
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

// Event returns an event about the message. Events about its arrival contain an
// [Arrival], all others a [MessageObject].
func (m Message) Event(t EventType) (Event, error) {
	var object any = m.Object()
	if t == MessageReceived || t == MessageEcho || t == MessageUndecryptable {
		object = m.arrival()
	}
	b, err := EncodeJSON(object)
	return Event{
		ID: NewEventID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Type: t, Subject: "message", Object: b,
		ChatID: m.ChatID, MessageID: m.ID,
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
