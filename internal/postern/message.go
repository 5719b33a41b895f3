package postern

import (
	"maps"
	"slices"
)

// MessageStatus is the state of a message. It only moves forward.
type MessageStatus string

// The states of an outbound message, and Received for an inbound one.
const (
	Scheduled MessageStatus = "scheduled"
	Queued    MessageStatus = "queued"
	Sending   MessageStatus = "sending"
	Sent      MessageStatus = "sent"
	Delivered MessageStatus = "delivered"
	Read      MessageStatus = "read"
	Played    MessageStatus = "played"
	Failed    MessageStatus = "failed"
	Expired   MessageStatus = "expired"
	Canceled  MessageStatus = "canceled"
	Received  MessageStatus = "received"
)

// Rank orders the states through which a message moves. Final failures have no rank.
func (s MessageStatus) Rank() int {
	switch s {
	case Scheduled:
		return 1
	case Queued:
		return 2
	case Sending:
		return 3
	case Sent:
		return 4
	case Delivered:
		return 5
	case Read:
		return 6
	case Played:
		return 7
	case Failed, Expired, Canceled, Received:
	}
	return 0
}

// IsEnd reports whether a message in the state is never sent, or was received.
func (s MessageStatus) IsEnd() bool {
	return s == Failed || s == Expired || s == Canceled || s == Received
}

// FailureCode is the cause of a failed message.
type FailureCode string

// The failure codes, as in the contract.
const (
	RecipientNotFound FailureCode = "RECIPIENT_NOT_FOUND"
	NotInGroup        FailureCode = "NOT_IN_GROUP"
	RestrictedSender  FailureCode = "RESTRICTED"
	NetworkRejected   FailureCode = "NETWORK_REJECTED"
	EncryptionFailed  FailureCode = "ENCRYPTION_FAILED"
	MediaUnusable     FailureCode = "MEDIA_FAILED"
	DeviceLoggedOut   FailureCode = "DEVICE_LOGGED_OUT"
	Unconfirmed       FailureCode = "UNCONFIRMED"

	// The codes of inbound messages that could not be read.
	DecryptionFailed   FailureCode = "DECRYPTION_FAILED"   // the sender was asked to send it again
	DecryptionPanicked FailureCode = "DECRYPTION_PANICKED" // it was tried three times
	MalformedMessage   FailureCode = "MALFORMED_MESSAGE"   // the envelope, such as its time
	MalformedContent   FailureCode = "MALFORMED_CONTENT"   // decrypted, but not a message
)

// Failure says why a message failed, or why it could not be read.
type Failure struct {
	Code   FailureCode `json:"code" enum:"RECIPIENT_NOT_FOUND,NOT_IN_GROUP,RESTRICTED,MEDIA_FAILED,NETWORK_REJECTED,ENCRYPTION_FAILED,DEVICE_LOGGED_OUT,UNCONFIRMED,DECRYPTION_FAILED,DECRYPTION_PANICKED,MALFORMED_MESSAGE,MALFORMED_CONTENT" doc:"A stable word to branch on." example:"RECIPIENT_NOT_FOUND"`
	Detail string      `json:"detail" doc:"The cause, for people." example:"the number is not on the network"`
}

// Priority decides which share of its device's sending a message gets while others wait.
type Priority string

// The priorities. "" means NormalPriority.
const (
	HighPriority   Priority = "high"
	NormalPriority Priority = "normal"
	LowPriority    Priority = "low"
)

// IsKnown reports whether p is one of the priorities, or "".
func (p Priority) IsKnown() bool {
	return p == "" || p == HighPriority || p == NormalPriority || p == LowPriority
}

// Stored returns p in the form in which messages have it: "" for NormalPriority.
func (p Priority) Stored() Priority {
	if p == NormalPriority {
		return ""
	}
	return p
}

// Lane is the part of a device's queue in which the messages of one priority wait. All messages
// of a chat that wait are in one lane.
type Lane int

// The lanes, and how many there are.
const (
	HighLane Lane = iota
	NormalLane
	LowLane
	Lanes
)

// Lane returns the lane in which messages of the priority wait, unless an earlier message of
// the chat waits in a better one.
func (p Priority) Lane() Lane {
	switch p {
	case HighPriority:
		return HighLane
	case LowPriority:
		return LowLane
	case NormalPriority:
	}
	return NormalLane
}

// Stride is how far a message of the lane moves its lane back in the order in which lanes take
// turns. While all lanes have messages, 6 of 10 messages are of the high lane, 3 of the normal
// one, and 1 of the low one.
func (l Lane) Stride() int { return [Lanes]int{1, 2, 6}[l] }

// Ahead returns how many messages leave before one of the lane that has rank messages before it
// in its lane, while as many wait in each lane.
func (l Lane) Ahead(rank int, waiting [Lanes]int) int {
	ahead, turn := rank, rank*l.Stride()
	for other := range Lanes {
		stride := other.Stride()
		switch {
		case other < l:
			ahead += min(waiting[other], turn/stride+1)
		case other > l:
			ahead += min(waiting[other], (turn+stride-1)/stride)
		}
	}
	return ahead
}

// Message is one message, inbound or outbound. Its JSON form is [MessageObject].
type Message struct {
	ID          MessageID
	WorkspaceID WorkspaceID
	DeviceID    DeviceID
	Direction   string // Inbound or Outbound
	ChatID      string
	From        Maybe     // "+" and digits; null while the network hides the number
	FromLID     string    // digits; "" if there is none
	FromName    string    // the sender's own name on the network
	ContactID   ContactID // of who wrote it, or got it in a direct chat; "" if unknown
	To          Maybe     // "+" and digits
	Content     Content
	Priority    Priority // HighPriority, LowPriority or ""
	ReplyTo     Maybe
	About       string // network id of the message that an action is about; "" for a message
	State       State  // what actions have made of it
	Status      MessageStatus
	Position    *int     // how many leave before it; only of a queued message that was read alone
	Error       *Failure // why the message failed; nil unless it did
	NetworkID   string   // the id on the network, chosen before the first attempt
	Source      string   // FromAPI, FromPhone, FromCompanion or FromContact
	Metadata    map[string]string
	CreatedAt   Time
	SendAt      Time // when a scheduled message is to be sent; 0 for all others
	SentAt      Time // the network's time
	DeliveredAt Time
	ReadAt      Time
	PlayedAt    Time
	ExpiresAt   Time // when sending an outbound message is given up

	History      bool   // the phone had it before the account was linked
	FromBusiness string // the verified name of the sender; stored with the contact only

	Trace string // that it belongs to, as a traceparent header; "" for none
}

// NeverSent reports whether a message has ended without having been sent. One whose end is [Unconfirmed] may have been.
func (m Message) NeverSent() bool {
	switch m.Status {
	case Canceled, Expired:
		return true
	case Failed:
		return m.Error == nil || m.Error.Code != Unconfirmed
	default:
		return false
	}
}

// Texts returns the texts by which a message is found: those of its content and the values of its metadata.
func (m Message) Texts() []string {
	return slices.AppendSeq(m.Content.Texts(), maps.Values(m.Metadata))
}

// Directions and sources of a message.
const (
	Inbound  = "inbound"
	Outbound = "outbound"

	FromAPI       = "api"
	FromPhone     = "phone"
	FromCompanion = "companion"
	FromContact   = "contact"
)

// Usage says how much of its plan a workspace has used in a UTC calendar month.
type Usage struct {
	Month    string
	Messages int
	Devices  int
}

// MessageSpan counts the messages that were accepted or received in a period, by
// outcome.
type MessageSpan struct {
	Start     Time
	Accepted  int64 // of the API
	Sent      int64 // of these, accepted by the network
	Delivered int64 // of these, delivered to the recipient
	Failed    int64 // of the accepted ones, failed or expired
	Received  int64
}
