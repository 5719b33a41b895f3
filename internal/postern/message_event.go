package postern

// Arrival is the object of message.received, message.echo and
// message.undecryptable: who wrote what.
type Arrival struct {
	ID       MessageID `json:"id" doc:"Opaque id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	From     string    `json:"from,omitempty" doc:"Sender's number; absent while the network hides it." example:"+15551234567"`
	Body     string    `json:"body" doc:"The text." example:"Hello"`
	ChatID   string    `json:"chatId" doc:"The chat; usable as \"to\"." example:"+15551234567"`
	Type     string    `json:"type" enum:"text,unsupported" doc:"Kind of the message." example:"text"`
	To       string    `json:"to,omitempty" doc:"Recipient's number, of a message that the account sent." example:"+15550001111"`
	ReplyTo  Maybe     `json:"replyTo" nullable:"true" doc:"The message that this one answers."`
	FromName string    `json:"fromName,omitempty" doc:"The sender's own name on the network." example:"Ada"`
	FromLID  string    `json:"fromLid,omitempty" doc:"Identifies the sender while the network hides the number." example:"lid:123456789012345"`
	Source   string    `json:"source" enum:"api,phone,companion,contact" doc:"Who wrote the message." example:"contact"`
	SentAt   Time      `json:"sentAt" format:"date-time" nullable:"true" doc:"When the message was sent, by the network's clock." example:"2026-11-21T09:00:00.000Z"`
}

// Event makes the event of this kind about the message. Events of arrival show
// who wrote what; all others show the message with its status.
func (m Message) Event(t EventType) (Event, error) {
	var object any = m
	if t == MessageReceived || t == MessageEcho || t == MessageUndecryptable {
		object = m.received()
	}
	b, err := EncodeJSON(object)
	return Event{ID: NewEventID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Type: t, Subject: "message", Object: b, ChatID: m.ChatID}, err
}

func (m Message) received() Arrival {
	r := Arrival{
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
