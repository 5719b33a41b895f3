package chaos

// Rule names a broken promise. It begins with the number of the invariant in
// docs/architecture.md.
type Rule string

// The rules of Judge.
const (
	AcceptedLost     Rule = "1-accepted-lost"     // answered with 202, but not in the database
	Unfinished       Rule = "1-unfinished"        // still queued or sending after everything had settled
	SentUnread       Rule = "1-sent-unread"       // marked as sent, but no phone decrypted it with this body
	WrongAnswer      Rule = "1-wrong-answer"      // an answer that the contract does not allow for a valid request
	FileChanged      Rule = "1-file-changed"      // a phone has another file than was asked for, or none
	SentEarly        Rule = "1-sent-early"        // a scheduled message reached the vendor before its time
	CanceledSent     Rule = "1-canceled-sent"     // a phone has it, or the gateway only said that it was canceled
	WrongEnd         Rule = "1-wrong-end"         // failed or expired without an explanation
	ActionLost       Rule = "1-action-lost"       // accepted, but not in the database
	ActionForgotten  Rule = "1-action-forgotten"  // a message does not show what an action made of it
	Unearned         Rule = "1-unearned"          // delivered or read, but the vendor never reported it
	SecondNetworkID  Rule = "2-second-network-id" // one message reached the vendor under two ids
	OtherNetworkID   Rule = "2-other-network-id"  // the vendor and the database have different ids for the message
	ActionTwice      Rule = "2-action-twice"      // in the database more often than it was asked for
	Unasked          Rule = "2-unasked"           // sent, or queued to be sent, although nobody asked for it
	NotTaken         Rule = "3-not-taken"         // the vendor still has an inbound message to deliver
	KeptTwice        Rule = "3-kept-twice"        // one inbound message, several rows
	TwoEvents        Rule = "3-two-events"        // one fact, several eventIds
	NoEvent          Rule = "3-no-event"          // a message went through a state without an event
	FileLost         Rule = "3-file-lost"         // the file of a received message is not there, or another one
	FileMissing      Rule = "3-file-missing"      // a file is ready in the database, and not in the storage
	FileOrphan       Rule = "3-file-orphan"       // the storage has what belongs to no file, after a sweep
	ChangedInbound   Rule = "3-changed-inbound"   // stored or reported with another body than was written
	Invented         Rule = "3-invented"          // an inbound message that the vendor never delivered
	Undelivered      Rule = "4-undelivered"       // no 2xx for an event, and attempts were left
	NoDelivery       Rule = "4-no-delivery"       // an event without its delivery
	ChangedBytes     Rule = "4-changed-bytes"     // an attempt carried other bytes than the log
	NotInLog         Rule = "4-not-in-log"        // an event was posted that is not in the log
	BadPost          Rule = "4-bad-post"          // signature or form
	BadEvent         Rule = "4-bad-event"         // an event's body contradicts its row, or its time runs backwards
	Skipped          Rule = "4-skipped"           // a reader that followed the log was not sent an event
	WokenLate        Rule = "4-woken-late"        // another server's changes were noticed only because the server looked
	SequenceHole     Rule = "4-sequence-hole"     // a device's events are not 1, 2, 3, …
	QuotaOff         Rule = "5-quota-off"         // used is not accepted − refunded
	BytesOff         Rule = "5-bytes-off"         // the count of stored bytes is not what is stored
	RefundedSent     Rule = "5-refunded-sent"     // refunded although the vendor has it
	NotRefunded      Rule = "5-not-refunded"      // not refunded although no frame left
	TwoEffects       Rule = "6-two-effects"       // one idempotency key, several messages
	AcknowledgedLost Rule = "7-acknowledged-lost" // acknowledged to the vendor, but not in the database
	LostReceipt      Rule = "7-lost-receipt"      // the vendor reported delivered or read, but the message has an earlier status
	TwoConnections   Rule = "8-two-connections"   // two servers held the connection of a device
	Disordered       Rule = "11-disordered"       // an action reached the vendor before an earlier one of its chat
	Leaked           Rule = "9-leaked"            // a secret or a message's text in the log
	MemberMissed     Rule = "1-member-missed"     // a member's phone could not decrypt a message to its group
	KeyLost          Rule = "7-key-lost"          // a member's key was acknowledged, and its next message could not be decrypted
	ChangeLost       Rule = "12-change-lost"      // no event reports a change of a group
	ChangeInvented   Rule = "12-change-invented"  // an event reports a change of a group that was never made
	GroupOff         Rule = "12-group-off"        // a group has another subject or other members than at the vendor
	SettingOff       Rule = "12-setting-off"      // a chat is archived or muted, and not at the vendor, or the other way round
	UnreadOff        Rule = "12-unread-off"       // a chat has not as many unread messages as at the vendor
	NameOff          Rule = "12-name-off"         // the address book has another name than the phone
)

// attempts is how many attempts a delivery has before it is exhausted.
const attempts = 12

// afterwards reports whether a rule holds only after a run has settled. The others hold
// at every moment.
func afterwards(r Rule) bool {
	switch r {
	case Unfinished, NotTaken, Undelivered, LostReceipt, FileLost, FileOrphan, MemberMissed, ChangeLost, GroupOff,
		SettingOff, UnreadOff, NameOff:
		return true
	default:
		return false
	}
}
