package postern

// receivedMessage is the object of message.received, message.echo and
// message.undecryptable.
type receivedMessage struct {
	ID       MessageID `json:"id"`
	From     string    `json:"from,omitempty"` // absent while the network hides the number
	Body     string    `json:"body"`
	ChatID   string    `json:"chatId"`
	Type     string    `json:"type"`
	To       string    `json:"to,omitempty"`
	ReplyTo  Maybe     `json:"replyTo"`
	FromName string    `json:"fromName,omitempty"`
	FromLID  string    `json:"fromLid,omitempty"`
	Source   string    `json:"source"`
	SentAt   Time      `json:"sentAt"`
}

// Event makes the event of this kind about the message. Events of arrival show
// who wrote what; all others show the message with its status.
func (m Message) Event(t EventType) (Event, error) {
	var object any = m
	if t == MessageReceived || t == MessageEcho || t == MessageUndecryptable {
		object = m.received()
	}
	b, err := EncodeJSON(object)
	return Event{ID: NewEventID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Type: t, Subject: "message", Object: b}, err
}

func (m Message) received() receivedMessage {
	r := receivedMessage{
		ID: m.ID, From: string(m.From), Body: m.Body, ChatID: m.ChatID, Type: m.Type, To: string(m.To),
		ReplyTo: m.ReplyTo, FromName: m.FromName, Source: m.Source, SentAt: m.SentAt,
	}
	if m.FromLID != "" {
		r.FromLID = ChatOfLID(m.FromLID)
	}
	return r
}

// Event makes the event of this kind about the device.
func (d Device) Event(t EventType) (Event, error) {
	b, err := EncodeJSON(d)
	return Event{ID: NewEventID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Type: t, Subject: "device", Object: b}, err
}
