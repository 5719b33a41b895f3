package postern

// MessageStatus is how far a message got. It only moves forward.
type MessageStatus string

// The states of an outbound message, and Received for an inbound one.
const (
	Queued    MessageStatus = "queued"
	Sending   MessageStatus = "sending"
	Sent      MessageStatus = "sent"
	Delivered MessageStatus = "delivered"
	Read      MessageStatus = "read"
	Failed    MessageStatus = "failed"
	Expired   MessageStatus = "expired"
	Received  MessageStatus = "received"
)

// Rank orders the states a message moves through; ended states have none.
func (s MessageStatus) Rank() int {
	switch s {
	case Queued:
		return 1
	case Sending:
		return 2
	case Sent:
		return 3
	case Delivered:
		return 4
	case Read:
		return 5
	case Failed, Expired, Received:
	}
	return 0
}

// FailureCode says why a message ended in Failed.
type FailureCode string

// The failure codes, as in the contract.
const (
	RecipientNotFound FailureCode = "RECIPIENT_NOT_FOUND"
	RestrictedSender  FailureCode = "RESTRICTED"
	NetworkRejected   FailureCode = "NETWORK_REJECTED"
	EncryptionFailed  FailureCode = "ENCRYPTION_FAILED"
	DeviceLoggedOut   FailureCode = "DEVICE_LOGGED_OUT"
	Unconfirmed       FailureCode = "UNCONFIRMED"
)

// Failure is why a message failed.
type Failure struct {
	Code   FailureCode `json:"code" example:"RECIPIENT_NOT_FOUND"`
	Detail string      `json:"detail" example:"the number is not on the network"`
}

// Message is one message, inbound or outbound.
type Message struct {
	ID          MessageID         `json:"id" doc:"Opaque id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	DeviceID    DeviceID          `json:"deviceId" example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Direction   string            `json:"direction" enum:"inbound,outbound" example:"outbound"`
	Type        string            `json:"type" enum:"text,unsupported" example:"text"`
	ChatID      string            `json:"chatId" doc:"The chat; usable as \"to\"." example:"+15551234567"`
	From        Maybe             `json:"from" nullable:"true" doc:"Sender's number; null while the network hides it." example:"+15550001111"`
	To          Maybe             `json:"to" nullable:"true" doc:"Recipient's number." example:"+15551234567"`
	Body        string            `json:"body" doc:"The text." example:"Hello"`
	ReplyTo     Maybe             `json:"replyTo" nullable:"true"`
	Status      MessageStatus     `json:"status" enum:"queued,sending,sent,delivered,read,failed,expired,received" example:"queued"`
	Error       *Failure          `json:"error" nullable:"true" doc:"Why the message failed."`
	NetworkID   string            `json:"networkId" doc:"The id the message has on the network, chosen before the first attempt." example:"3EB0A1B2C3D4E5F60718"`
	Source      string            `json:"source" enum:"api,phone,companion,contact" doc:"Who wrote the message." example:"api"`
	Metadata    map[string]string `json:"metadata" doc:"The caller's own labels."`
	CreatedAt   Time              `json:"createdAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:00.000Z"`
	SentAt      Time              `json:"sentAt" format:"date-time" nullable:"true" doc:"When the message was sent, by the network's clock." example:"2026-11-21T09:00:00.000Z"`
	DeliveredAt Time              `json:"deliveredAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:00.000Z"`
	ReadAt      Time              `json:"readAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:00.000Z"`
	PlayedAt    Time              `json:"playedAt" format:"date-time" nullable:"true" example:"2026-11-21T09:00:00.000Z"`
	ExpiresAt   Time              `json:"expiresAt" format:"date-time" nullable:"true" doc:"When an outbound message expires." example:"2026-11-22T09:00:00.000Z"`

	WorkspaceID WorkspaceID `json:"-"`
	FromLID     string      `json:"-"`
	FromName    string      `json:"-"`
}

// Directions and sources of a message.
const (
	Inbound  = "inbound"
	Outbound = "outbound"

	FromAPI     = "api"
	FromPhone   = "phone"
	FromContact = "contact"

	TypeText        = "text"
	TypeUnsupported = "unsupported"
)

// Usage is what a workspace used of its plan in a UTC calendar month.
type Usage struct {
	Month    string
	Messages int
	Devices  int
}

// MessageSpan is what became of the messages of a span of time, by when they were
// accepted or came.
type MessageSpan struct {
	Start     Time
	Accepted  int64 // of the API
	Sent      int64 // of these, what the network took
	Delivered int64 // of these, what arrived
	Failed    int64 // of those accepted, what failed or expired
	Received  int64
}
