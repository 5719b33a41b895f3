// Package failpoint is where tests make the program stop, fail, wait or do
// wrong. Its functions are there only in a program built with the tag
// "failpoints", and called only by the files named hook_on.go.
package failpoint

import "hash/fnv"

// Point is a place in the life of a message or an event, named as in the
// settings of a test.
type Point string

// The points, in the order in which a message meets them.
const (
	AcceptBeforeCommit Point = "accept-before-commit" // a message to send is written, not committed
	AcceptAfterCommit  Point = "accept-after-commit"  // it is committed, not answered
	SendBeforeMark     Point = "send-before-mark"     // its turn has come
	SendAfterMark      Point = "send-after-mark"      // from now on the network may have it
	SendFrameWritten   Point = "send-frame-written"   // it is on the wire
	SendAnswered       Point = "send-answered"        // the vendor has answered
	SendBeforeCommit   Point = "send-before-commit"   // the outcome is written, not committed

	InboxDecrypted    Point = "inbox-decrypted"    // an inbound message is readable
	InboxInserted     Point = "inbox-inserted"     // it is written, not committed
	InboxBeforeAck    Point = "inbox-before-ack"   // it is committed, and not acknowledged to the vendor
	InboxAcknowledged Point = "inbox-acknowledged" // the acknowledgement is on the wire

	HookBeforePost Point = "hook-before-post" // a delivery's turn has come
	HookAnswered   Point = "hook-answered"    // the receiver has answered, and it is not noted
)

// Points lists all points.
func Points() []Point {
	return []Point{
		AcceptBeforeCommit, AcceptAfterCommit, SendBeforeMark, SendAfterMark, SendFrameWritten, SendAnswered, SendBeforeCommit,
		InboxDecrypted, InboxInserted, InboxBeforeAck, InboxAcknowledged, HookBeforePost, HookAnswered,
	}
}

// Mistake is something that a saboteur does wrong on purpose, so that a test
// can show that it would be noticed.
type Mistake string

// The mistakes, each against one promise of docs/architecture.md.
const (
	AnswerEarly       Mistake = "answer-early"       // a message is accepted before it is durable
	RefuseGood        Mistake = "refuse-good"        // a good request is refused
	FailGood          Mistake = "fail-good"          // a message that could be sent is given up
	GiveUpEarly       Mistake = "give-up-early"      // an event is given up after its first attempt
	DropReceipts      Mistake = "drop-receipts"      // acknowledged to the vendor, and forgotten
	PretendRead       Mistake = "pretend-read"       // delivered counts as read
	TellOtherText     Mistake = "tell-other-text"    // the event says something else than the message
	Invent            Mistake = "invent"             // an inbound message that nobody wrote
	ForgetEvent       Mistake = "forget-event"       // an event is removed from the log
	DateBack          Mistake = "date-back"          // an event's time runs backwards
	NeverFinish       Mistake = "never-finish"       // a message is tried for ever
	PretendSent       Mistake = "pretend-sent"       // a message is marked as sent and never was
	SendUnderTwoIDs   Mistake = "send-under-two-ids" // a message is sent again under another id
	SendUnderOtherID  Mistake = "send-under-other-id"
	SendOtherText     Mistake = "send-other-text"
	NeverTake         Mistake = "never-take" // an inbound message is refused for ever
	KeepTwice         Mistake = "keep-twice" // one inbound message becomes two
	TellTwice         Mistake = "tell-twice" // one fact becomes two events
	TellNever         Mistake = "tell-never" // a fact without an event
	KeepOtherText     Mistake = "keep-other-text"
	PretendDelivered  Mistake = "pretend-delivered" // a failed webhook counts as a success
	QueueNever        Mistake = "queue-never"       // an event that no endpoint gets
	PostOtherBytes    Mistake = "post-other-bytes"
	SignWrong         Mistake = "sign-wrong"
	SkipSequence      Mistake = "skip-sequence"
	SpendTwice        Mistake = "spend-twice"        // one message costs two units of the quota
	RefundNever       Mistake = "refund-never"       // what never left is paid for
	RefundSent        Mistake = "refund-sent"        // what was sent is given back
	ForgetIdempotency Mistake = "forget-idempotency" // a repeated request is a second message
	AcknowledgeEarly  Mistake = "acknowledge-early"  // the vendor is told before the commit
	LogText           Mistake = "log-text"           // a message's text is written to the log
)

// Chosen reports whether NeverFinish and NeverTake apply to the message with a network
// id. It chooses one in eight, and always the same.
func Chosen(networkID string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(networkID))
	return h.Sum32()%8 == 0
}
