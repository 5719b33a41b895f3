package postern

// ReceivedCall is the object of call.received.
type ReceivedCall struct {
	ID        string    `json:"id" doc:"Id of the call on the network." example:"3EB0A1B2C3D4E5F60718"`
	MessageID MessageID `json:"messageId" doc:"The message by which lists and conversations show the call." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID    string    `json:"chatId" doc:"The chat with the contact; usable as \"to\"." example:"+15551234567"`
	From      string    `json:"from,omitempty" doc:"Number of the contact; absent while the network hides it." example:"+15551234567"`
	FromLID   string    `json:"fromLid,omitempty" doc:"Identifies the contact while the network hides the number." example:"lid:123456789012345"`
	At        Time      `json:"at" format:"date-time" nullable:"true" doc:"When the contact called, by the network's clock." example:"2026-11-21T09:00:00.000Z"`

	Call
}

// callEvent returns the event about a call.
func (m Message) callEvent() (Event, error) {
	o := ReceivedCall{ID: m.NetworkID, MessageID: m.ID, ChatID: m.ChatID, From: string(m.From), At: m.SentAt}
	if m.FromLID != "" {
		o.FromLID = ChatOfLID(m.FromLID)
	}
	if m.Content.Call != nil {
		o.Call = *m.Content.Call
	}
	b, err := EncodeJSON(o)
	return Event{
		ID: NewEventID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Type: CallReceived, Subject: "call", Object: b,
		ChatID: m.ChatID,
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
		ChatID: m.ChatID,
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
