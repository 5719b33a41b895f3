// Package failpoint lets tests make the program stop, fail, wait or misbehave. Its
// functions exist only in programs built with the tag "failpoints", and only files named
// hook_on.go call them.
package failpoint

import "hash/fnv"

// Point is a place in the life of a message or an event. Its name is used in the settings
// of a test.
type Point string

// The points, in the order in which a message passes them.
const (
	AcceptBeforeCommit Point = "accept-before-commit" // an outbound message is written but not committed
	AcceptAfterCommit  Point = "accept-after-commit"  // it is committed but not answered
	SendBeforeMark     Point = "send-before-mark"     // it is about to be sent
	SendAfterMark      Point = "send-after-mark"      // from here on, the network may have it
	SendFrameWritten   Point = "send-frame-written"   // it is on the wire
	SendAnswered       Point = "send-answered"        // the vendor has answered
	SendBeforeCommit   Point = "send-before-commit"   // the outcome is written but not committed

	InboxDecrypted    Point = "inbox-decrypted"    // an inbound message is decrypted
	InboxInserted     Point = "inbox-inserted"     // it is written but not committed
	InboxBeforeAck    Point = "inbox-before-ack"   // it is committed but not acknowledged to the vendor
	InboxAcknowledged Point = "inbox-acknowledged" // the acknowledgement is on the wire

	HookBeforePost Point = "hook-before-post" // a delivery is about to be posted
	HookAnswered   Point = "hook-answered"    // the receiver has answered, but the attempt is not recorded
)

// Points lists all points.
func Points() []Point {
	return []Point{
		AcceptBeforeCommit, AcceptAfterCommit, SendBeforeMark, SendAfterMark, SendFrameWritten, SendAnswered,
		SendBeforeCommit,
		InboxDecrypted, InboxInserted, InboxBeforeAck, InboxAcknowledged, HookBeforePost, HookAnswered,
	}
}

// Mistake is something that a saboteur does wrong on purpose, so that a test can prove
// that it would be noticed.
type Mistake string

// The mistakes. Each breaks one promise of docs/architecture.md.
const (
	AnswerEarly       Mistake = "answer-early"       // a message is accepted before it is durable
	RefuseGood        Mistake = "refuse-good"        // a valid request is refused
	FailGood          Mistake = "fail-good"          // a message that could be sent fails
	GiveUpEarly       Mistake = "give-up-early"      // a delivery is exhausted after its first attempt
	DropReceipts      Mistake = "drop-receipts"      // a receipt is acknowledged to the vendor and dropped
	PretendRead       Mistake = "pretend-read"       // delivered counts as read
	TellOtherText     Mistake = "tell-other-text"    // the event has another text than the message
	Invent            Mistake = "invent"             // an inbound message that nobody wrote
	ForgetEvent       Mistake = "forget-event"       // an event is removed from the log
	DateBack          Mistake = "date-back"          // an event has an earlier time than the one before
	NeverFinish       Mistake = "never-finish"       // a message is tried forever
	PretendSent       Mistake = "pretend-sent"       // a message is marked as sent but never was
	SendUnderTwoIDs   Mistake = "send-under-two-ids" // a message is sent again under another id
	SendUnderOtherID  Mistake = "send-under-other-id"
	SendOtherText     Mistake = "send-other-text"
	NeverTake         Mistake = "never-take" // an inbound message is refused forever
	KeepTwice         Mistake = "keep-twice" // one inbound message becomes two
	TellTwice         Mistake = "tell-twice" // one fact becomes two events
	TellNever         Mistake = "tell-never" // a fact without an event
	KeepOtherText     Mistake = "keep-other-text"
	PretendDelivered  Mistake = "pretend-delivered" // a failed webhook counts as a success
	QueueNever        Mistake = "queue-never"       // an event without a delivery
	PostOtherBytes    Mistake = "post-other-bytes"
	SignWrong         Mistake = "sign-wrong"
	SkipSequence      Mistake = "skip-sequence"
	SpendTwice        Mistake = "spend-twice"        // one message costs two units of the quota
	RefundNever       Mistake = "refund-never"       // a message that never left is not refunded
	RefundSent        Mistake = "refund-sent"        // a message that was sent is refunded
	ForgetIdempotency Mistake = "forget-idempotency" // a repeated request is a second message
	AcknowledgeEarly  Mistake = "acknowledge-early"  // a message is acknowledged to the vendor before the commit
	CancelNever       Mistake = "cancel-never"       // a message is told to be canceled and is sent
	SendEarly         Mistake = "send-early"         // a scheduled message is sent before its time
	SendOtherFile     Mistake = "send-other-file"
	KeepOtherFile     Mistake = "keep-other-file"
	LogText           Mistake = "log-text"        // a message's text is written to the log
	LoseAction        Mistake = "lose-action"     // an action is accepted and not kept
	ActTwice          Mistake = "act-twice"       // one action becomes two
	ForgetAction      Mistake = "forget-action"   // a message does not change with an action
	SpendOnAction     Mistake = "spend-on-action" // an action costs a unit of the quota
	SendNewestFirst   Mistake = "send-newest-first"
	KeepOrphan        Mistake = "keep-orphan"    // a sweep leaves contents that belong to no file
	LoseFile          Mistake = "lose-file"      // a sweep removes the contents of files
	ForgetBytes       Mistake = "forget-bytes"   // contents that are removed stay in the count
	StayConnected     Mistake = "stay-connected" // a server whose lease has ended goes on
	LoseNotices       Mistake = "lose-notices"   // what other servers have changed wakes nobody
	WriteOutOfTurn    Mistake = "write-out-of-turn"
	ForgetSenderKey   Mistake = "forget-sender-key" // a member's key is acknowledged to the vendor, and only in memory
	InventChange      Mistake = "invent-change"     // an event reports a change of a group that nobody made
	LoseChange        Mistake = "lose-change"       // a notice about a group is acknowledged and dropped
	ForgetSetting     Mistake = "forget-setting"    // what the phone sets for a chat is read and not kept
)

// Chosen reports whether NeverFinish and NeverTake apply to the message with a network
// id. It chooses one in eight, and always the same.
func Chosen(networkID string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(networkID))
	return h.Sum32()%8 == 0
}
