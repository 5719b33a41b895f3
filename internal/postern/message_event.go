package postern

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
