package chaos

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"postern/vendorsim"
)

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
	SequenceHole     Rule = "4-sequence-hole"     // a device's events are not 1, 2, 3, …
	QuotaOff         Rule = "5-quota-off"         // used is not accepted − refunded
	RefundedSent     Rule = "5-refunded-sent"     // refunded although the vendor has it
	NotRefunded      Rule = "5-not-refunded"      // not refunded although no frame left
	TwoEffects       Rule = "6-two-effects"       // one idempotency key, several messages
	AcknowledgedLost Rule = "7-acknowledged-lost" // acknowledged to the vendor, but not in the database
	LostReceipt      Rule = "7-lost-receipt"      // the vendor reported delivered or read, but the message has an earlier status
	Disordered       Rule = "11-disordered"       // an action reached the vendor before an earlier one of its chat
	Leaked           Rule = "9-leaked"            // a secret or a message's text in the log
)

// attempts is how many attempts a delivery has before it is exhausted.
const attempts = 12

// afterwards reports whether a rule holds only after a run has settled. The others hold
// at every moment.
func afterwards(r Rule) bool {
	switch r {
	case Unfinished, NotTaken, Undelivered, LostReceipt, FileLost, FileOrphan:
		return true
	default:
		return false
	}
}

// Violation is one broken promise.
type Violation struct {
	Rule   Rule
	ID     string // of the message, event or key it is about
	Detail string
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Rule, v.ID, v.Detail) }

// Evidence is everything that the judge examines.
type Evidence struct {
	Calls  []Call  // the driver's ledger
	Posts  []Post  // the receiver's ledger
	Vendor []Entry // the vendor's ledger
	State  State   // the database, after everything had settled and the gateway was stopped
	Leaks  []Leak  // secrets and texts in the gateway's log
	Swept  bool    // the storage was swept after everything had settled

	// Interrupted is the maximum number of attempts that a kill or a fault cut short
	// before a frame left. The gateway cannot know that none did, so it does not refund
	// them.
	Interrupted int
}

// Judge compares the ledgers with each other and with the database, and returns the
// violations in the order of the rules.
func Judge(e Evidence) []Violation {
	j := newJudging(e)
	j.answers()
	j.outbound()
	j.inbound()
	j.actions()
	j.files()
	j.states()
	j.events()
	j.posts()
	j.quota()
	j.log()
	return j.sorted()
}

// JudgeNow is Judge for a gateway that was stopped while it was working.
func JudgeNow(e Evidence) []Violation {
	return slices.DeleteFunc(Judge(e), func(v Violation) bool { return afterwards(v.Rule) })
}

// findings are the violations found so far.
type findings []Violation

func (f *findings) report(r Rule, id, format string, args ...any) {
	*f = append(*f, Violation{r, id, fmt.Sprintf(format, args...)})
}

// sorted returns them in the order of the rules.
func (f findings) sorted() []Violation {
	slices.SortFunc(f, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Detail, b.Detail))
	})
	return f
}

// networked identifies a message on the network.
type networked struct{ account, id string }

// target identifies a message as actions do.
type target struct{ device, chat, networkID string }

// judging is the evidence with its indexes.
type judging struct {
	Evidence
	findings

	asks      map[string]Ask         // by key
	canceled  map[string]bool        // messages that the gateway said it has canceled
	asked     map[string]Ask         // by body
	messages  map[string]Message     // by id
	written   map[string][]Message   // outbound, by body
	taken     map[networked][]string // inbound: ids of the rows
	given     map[networked]bool     // inbound, by the vendor
	readable  map[networked]Entry    // outbound, as the recipient's phone decrypted it
	eventOf   map[[2]string][]string // message and type → eventIds
	told      map[string]string      // texts of message.received, by message
	targets   map[target]string      // ids of messages
	acted     map[networked]Entry    // actions, as the recipient's phone decrypted them
	said      map[deed][]string      // eventIds of actions
	delivered map[string]bool        // events that were answered with 2xx
	posted    map[string]int         // attempts of an event that came
}

func newJudging(e Evidence) *judging {
	j := &judging{
		Evidence: e, canceled: map[string]bool{}, asks: map[string]Ask{}, asked: map[string]Ask{},
		messages: map[string]Message{},
		written:  map[string][]Message{},
		taken:    map[networked][]string{}, given: map[networked]bool{}, readable: map[networked]Entry{},
		eventOf: map[[2]string][]string{}, told: map[string]string{}, delivered: map[string]bool{},
		posted:  map[string]int{},
		targets: map[target]string{}, acted: map[networked]Entry{}, said: map[deed][]string{},
	}
	j.Vendor = withQuestions(e.Vendor)
	for _, c := range e.Calls {
		if c.Ask != nil {
			j.asks[c.Ask.Key], j.asked[c.Ask.Body] = *c.Ask, *c.Ask
		}
		if c.Canceled != "" {
			j.canceled[c.Canceled] = true
		}
	}
	for _, m := range e.State.Messages {
		j.messages[m.ID], j.targets[target{m.Device, m.Chat, m.NetworkID}] = m, m.ID
		if m.Direction == "outbound" {
			j.written[m.Body] = append(j.written[m.Body], m)
		} else {
			at := networked{e.State.Devices[m.Device], m.NetworkID}
			j.taken[at] = append(j.taken[at], m.ID)
		}
	}
	for _, a := range e.State.Actions {
		if a.Direction == "inbound" {
			at := networked{e.State.Devices[a.Device], a.NetworkID}
			j.taken[at] = append(j.taken[at], a.ID)
		}
	}
	for _, v := range j.Vendor {
		switch {
		case v.Direction == "inbound":
			j.given[networked{v.Account, v.NetworkID}] = true
		case isMessage(v.Type):
			j.readable[networked{v.Account, v.NetworkID}] = v
		case isAction(v.Type):
			j.acted[networked{v.Account, v.NetworkID}] = v
		}
	}
	for _, ev := range e.State.Events {
		if ev.Says.Message.ID != "" {
			fact := [2]string{ev.Says.Message.ID, ev.Type}
			j.eventOf[fact] = append(j.eventOf[fact], ev.ID)
		}
		if ev.Type == "message.received" {
			j.told[ev.Says.Message.ID] = ev.Says.written()
		}
		if d, ok := j.deedIn(ev); ok {
			j.said[d] = append(j.said[d], ev.ID)
		}
	}
	for _, p := range e.Posts {
		j.posted[p.EventID]++
		if p.Answer/100 == 2 {
			j.delivered[p.EventID] = true
		}
	}
	return j
}

// isMessage reports whether entries of a type in the vendor's ledger are messages of the driver.
func isMessage(kind string) bool { return kind == "text" || kind == "document" || kind == "poll" }

// withQuestions returns entries in which the question of a poll stands for its text.
func withQuestions(entries []Entry) []Entry {
	entries = slices.Clone(entries)
	for i, v := range entries {
		if v.Poll != nil {
			entries[i].Body = v.Poll.Question
		}
	}
	return entries
}

// deedIn returns the action that an event reports.
func (j *judging) deedIn(e Event) (d deed, ok bool) {
	m := e.Says.Message
	d = deed{message: m.ID}
	from := ""
	switch e.Type {
	case "message.reaction":
		d.kind, d.text, from = "reaction", m.Reaction.Emoji, m.Reaction.From
	case "poll.vote":
		d.kind, d.text, from = "vote", strings.Join(m.Vote.Options, ","), m.Vote.From
	case "message.edited":
		d.kind, d.text = "edit", m.Body
	case "message.deleted":
		d.kind = "revoke"
	default:
		return d, false
	}
	if from == "" { // only its author changes a message
		d.received = j.messages[m.ID].Direction == "inbound"
	} else {
		d.received = from != j.State.Devices[e.Device]
	}
	return d, true
}

// answers checks the gateway's answers to the driver.
func (j *judging) answers() {
	told := map[string]string{} // key → message id
	for _, c := range j.Calls {
		t := c.Told
		if t == nil {
			continue
		}
		switch t.Status {
		case http.StatusAccepted:
		case 0, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
			continue // unknown, or refused temporarily
		default:
			j.report(WrongAnswer, t.Key, "status %d", t.Status)
			continue
		}
		m, ok := j.messages[t.MessageID]
		if !ok {
			j.report(AcceptedLost, t.MessageID, "answered with 202 under the key %s, and there is no such message",
				t.Key)
		} else if m.Body != j.asks[t.Key].Body {
			j.report(AcceptedLost, t.MessageID, "its body is not what was asked under the key %s", t.Key)
		}
		if before := told[t.Key]; before != "" && before != t.MessageID {
			j.report(TwoEffects, t.Key, "answered with %s and with %s", before, t.MessageID)
		}
		told[t.Key] = t.MessageID
	}
	for body, list := range j.written {
		if _, asked := j.asked[body]; !asked {
			j.report(Unasked, list[0].ID, "nobody asked for it")
		} else if len(list) > 1 {
			j.report(TwoEffects, j.asked[body].Key, "%d messages, such as %s and %s", len(list), list[0].ID, list[1].ID)
		}
	}
}

// outbound compares the requests with what the vendor received.
func (j *judging) outbound() {
	ids := map[string]string{} // body → network id
	for _, v := range j.Vendor {
		if v.Direction != "outbound" || !isMessage(v.Type) {
			continue
		}
		ask, asked := j.asked[v.Body]
		if sum := fileOf(v); asked && sum != ask.File {
			j.report(FileChanged, v.NetworkID, "the phone has the file %q, and %q was asked for", sum, ask.File)
		}
		if !asked || ask.To != v.Peer || j.State.Devices[ask.Device] != v.Account {
			j.report(Unasked, v.NetworkID, "from %s to %s", v.Account, v.Peer)
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, ask.SendAt); err == nil && v.ArrivedAt.Before(at) {
			j.report(SentEarly, v.NetworkID, "arrived at %s, and was to be sent at %s", v.ArrivedAt, ask.SendAt)
		}
		if before, twice := ids[v.Body]; twice && len(j.written[v.Body]) < 2 {
			j.report(SecondNetworkID, ask.Key, "reached the vendor as %s and as %s", before, v.NetworkID)
		}
		ids[v.Body] = v.NetworkID
		list := j.written[v.Body]
		if len(list) > 0 && !slices.ContainsFunc(list, func(m Message) bool { return m.NetworkID == v.NetworkID }) {
			j.report(OtherNetworkID, list[0].ID, "%s in the database, %s at the vendor", list[0].NetworkID, v.NetworkID)
		}
	}
}

// fileOf returns the SHA-256 of the file of a message, or "".
func fileOf(v Entry) string {
	if v.Media == nil {
		return ""
	}
	return v.Media.SHA256.String()
}

// states checks the final state of each outbound message.
func (j *judging) states() {
	for _, m := range j.State.Messages {
		if m.Direction != "outbound" {
			continue
		}
		v, read := j.readable[networked{j.State.Devices[m.Device], m.NetworkID}]
		switch m.Status {
		case "scheduled", "queued", "sending":
			j.report(Unfinished, m.ID, "is %s", m.Status)
		case "sent", "delivered", "read", "played":
			if !read || v.Body != m.Body {
				j.report(SentUnread, m.ID, "is %s, and no phone decrypted it", m.Status)
			} else {
				j.receipts(m, v)
			}
		case "canceled":
			j.wasCanceled(m, read)
		default:
			j.ended(m, v, read)
		}
		if j.canceled[m.ID] && m.Status != "canceled" {
			j.report(CanceledSent, m.ID, "is %s, and the gateway said that it was canceled", m.Status)
		}
		for _, step := range stepsTo(m.Status) {
			j.once(m.ID, "message."+step)
		}
		if m.Status != "failed" && m.Status != "expired" {
			j.never(m.ID, "message.failed", "message.expired")
		}
	}
}

// receipts compares a status with what the vendor reported.
func (j *judging) receipts(m Message, v Entry) {
	switch reached := status(v); {
	case rank(m.Status) < rank(reached):
		j.report(LostReceipt, m.ID, "is %s, and the vendor said %s", m.Status, reached)
	case rank(m.Status) > rank(reached):
		j.report(Unearned, m.ID, "is %s, and the vendor said %s", m.Status, reached)
	}
}

func status(v Entry) string {
	switch {
	case v.ReadAt != nil:
		return "read"
	case v.DeliveredAt != nil:
		return "delivered"
	}
	return "sent"
}

func rank(status string) int { return slices.Index([]string{"sent", "delivered", "read"}, status) }

// ended checks a message that was not sent. Everything that the driver asks for can be
// sent within its lifetime of a day, except to the number that is not on the network.
func (j *judging) ended(m Message, v Entry, read bool) {
	if m.Status != "failed" || m.Failure != "RECIPIENT_NOT_FOUND" || j.asked[m.Body].To != vendorsim.NumberUnknown {
		j.report(WrongEnd, m.ID, "is %s %s", m.Status, m.Failure)
	}
	if read && !m.FrameLeft {
		j.report(RefundedSent, m.ID, "is %s, and its unit was given back; the vendor has it as %s", m.Status,
			v.NetworkID)
	}
}

// wasCanceled checks a message that was canceled.
func (j *judging) wasCanceled(m Message, read bool) {
	if !j.asked[m.Body].Cancel {
		j.report(WrongEnd, m.ID, "is canceled, and nobody asked for that")
	}
	if read {
		j.report(CanceledSent, m.ID, "is canceled, and a phone has it")
	}
}

// never reports events that contradict the status of a message.
func (j *judging) never(message string, kinds ...string) {
	for _, kind := range kinds {
		if ids := j.eventOf[[2]string{message, kind}]; len(ids) > 0 {
			j.report(TwoEvents, message, "%s beside another end: %v", kind, ids)
		}
	}
}

// stepsTo lists the states through which a message went, each with its own event.
func stepsTo(status string) []string {
	steps := []string{"sent", "delivered", "read"}
	if i := slices.Index(steps, status); i >= 0 {
		return steps[:i+1]
	}
	if status == "failed" || status == "expired" || status == "canceled" {
		return []string{status}
	}
	return nil
}

// once checks that a fact has exactly one event.
func (j *judging) once(message, kind string) {
	switch ids := j.eventOf[[2]string{message, kind}]; len(ids) {
	case 0:
		j.report(NoEvent, message, "no %s", kind)
	case 1:
	default:
		j.report(TwoEvents, message, "%s is %v", kind, ids)
	}
}

// inbound compares what the vendor delivered with the messages and events.
func (j *judging) inbound() {
	for _, v := range j.Vendor {
		if v.Direction != "inbound" {
			continue
		}
		list := j.taken[networked{v.Account, v.NetworkID}]
		switch {
		case len(list) == 0 && v.AckedAt != nil:
			j.report(AcknowledgedLost, v.NetworkID, "acknowledged at %s by %s, and not in the database",
				v.AckedAt.Format("15:04:05.000"), v.Account)
		case v.AckedAt == nil || v.Refused != 0:
			j.report(NotTaken, v.NetworkID, "for %s; refused: %d", v.Account, v.Refused)
		case len(list) > 1:
			j.report(KeptTwice, v.NetworkID, "as %v", list)
		case isAction(v.Type):
			j.action(list[0], v)
		default:
			j.once(list[0], "message.received")
			j.file(list[0], v)
			if said, ok := j.told[list[0]]; j.messages[list[0]].Body != v.Body || ok && said != v.Body {
				j.report(ChangedInbound, list[0], "another body than the vendor's, in the row or in its event")
			}
		}
	}
	for at, list := range j.taken {
		if !j.given[at] {
			j.report(Invented, list[0], "the vendor gave %s no message %s", at.account, at.id)
		}
	}
}

// action compares an action that was received with that of the vendor.
func (j *judging) action(id string, v Entry) {
	i := slices.IndexFunc(j.State.Actions, func(a Action) bool { return a.ID == id })
	if i < 0 {
		j.report(ChangedInbound, id, "it is a message, and the vendor's is a %s", v.Type)
		return
	}
	text := deedOf("", v).text
	if v.Type == "vote" {
		text = hashOfOption(text)
	}
	if a := j.State.Actions[i]; a.Kind != v.Type || a.Text != text || a.About != v.Target {
		j.report(ChangedInbound, id, "it is a %s %q of %s, and the vendor's a %s %q of %s", a.Kind, a.Text, a.About, v.Type,
			text, v.Target)
	}
}

// files compares the files with the storage.
func (j *judging) files() {
	for id, f := range j.State.Files {
		if f.Status == "ready" && !f.Stored {
			j.report(FileMissing, id, "it is ready, and %s is not in the storage", f.SHA256)
		}
	}
	for _, hash := range j.State.Orphans {
		if j.Swept {
			j.report(FileOrphan, hash, "it is in the storage, and belongs to no file")
		}
	}
}

// file compares the file of a received message with that of the vendor.
func (j *judging) file(id string, v Entry) {
	want := fileOf(v)
	if want == "" {
		return
	}
	if f := j.State.Files[j.messages[id].File]; f != (File{"ready", want, true}) {
		j.report(FileLost, id, "its file is %+v, and the vendor has %s", f, want)
		return
	}
	j.once(id, "media.ready")
}

// events checks the log itself, and its deliveries.
func (j *judging) events() {
	j.order()
	status := map[string]string{} // of the delivery, by event
	for _, d := range j.State.Deliveries {
		status[d.EventID] = d.Status
	}
	for _, e := range j.State.Events {
		switch s, ok := status[e.ID]; {
		case !ok:
			j.report(NoDelivery, e.ID, "%s of %s", e.Type, e.Device)
		case s == "exhausted" && j.posted[e.ID] < attempts:
			j.report(Undelivered, e.ID, "%s of %s: given up after %d attempts", e.Type, e.Device, j.posted[e.ID])
		case s != "exhausted" && (s != "succeeded" || !j.delivered[e.ID]):
			j.report(Undelivered, e.ID, "%s of %s: the delivery is %s; answered with 2xx: %v", e.Type, e.Device, s,
				j.delivered[e.ID])
		}
	}
}

// order checks that a device's events are numbered without gaps, that their bodies
// agree, and that their times never decrease.
func (j *judging) order() {
	last := map[string]Event{} // by device
	for _, e := range j.State.Events {
		before := last[e.Device]
		if e.Sequence != before.Sequence+1 {
			j.report(SequenceHole, e.ID, "%d where %s is at %d", e.Sequence, e.Device, before.Sequence)
		}
		if s := e.Says; s.EventID != e.ID || s.Type != e.Type || s.DeviceID != e.Device || s.Sequence != e.Sequence ||
			s.Timestamp < before.Says.Timestamp {
			j.report(BadEvent, e.ID, "number %d of %s, %s at %s, says that it is %+v", e.Sequence, e.Device, e.Type,
				before.Says.Timestamp, s)
		}
		last[e.Device] = e
	}
	for device, sequence := range j.State.Sequences {
		if last[device].Sequence != sequence {
			j.report(SequenceHole, device, "its newest event is %d, its count %d", last[device].Sequence, sequence)
		}
	}
}

// posts compares what the receiver got with the log.
func (j *judging) posts() {
	logged := make(map[string]Event, len(j.State.Events))
	for _, e := range j.State.Events {
		logged[e.ID] = e
	}
	seen := map[[2]string]string{} // message and type → eventId
	for _, p := range j.Posts {
		if p.Wrong != "" {
			j.report(BadPost, p.EventID, "%s", p.Wrong)
		}
		if p.Type == "webhook.verification" {
			continue
		}
		if e, ok := logged[p.EventID]; ok && e.SHA256 != p.SHA256 {
			j.report(ChangedBytes, p.EventID, "attempt %s carried other bytes than the log holds", p.Attempt)
		} else if !ok {
			j.report(NotInLog, p.EventID, "%s", p.Type)
		}
		if p.MessageID == "" || slices.Contains(actionEvents, p.Type) { // there may be several reactions
			continue
		}
		fact := [2]string{p.MessageID, p.Type}
		if before := seen[fact]; before != "" && before != p.EventID && len(j.eventOf[fact]) < 2 {
			j.report(TwoEvents, p.MessageID, "%s came as %s and as %s", p.Type, before, p.EventID)
		}
		seen[fact] = p.EventID
	}
}

// log reports secrets and texts in the gateway's log.
func (j *judging) log() {
	for _, l := range j.Leaks {
		j.report(Leaked, fmt.Sprintf("line %d", l.Line), "%s", l.What)
	}
}

// quota compares the units used with the accepted and the refunded messages. A message
// that ended without a frame is refunded.
func (j *judging) quota() {
	accepted, refunded, kept, back := 0, 0, 0, 0
	for _, m := range j.State.Messages {
		switch {
		case m.Direction != "outbound":
			continue
		case !m.FrameLeft && (m.Status == "failed" || m.Status == "expired" || m.Status == "canceled"):
			refunded++
			if m.Failure == "RECIPIENT_NOT_FOUND" {
				back++
			}
		case m.Failure == "RECIPIENT_NOT_FOUND":
			kept++
		}
		accepted++
	}
	if kept > min(j.Interrupted, back) {
		j.report(NotRefunded, "the month",
			"%d messages to nobody were not given back and %d were; at most %d attempts were cut short", kept, back,
			j.Interrupted)
	}
	if j.State.Used != accepted-refunded {
		j.report(QuotaOff, "the month", "used is %d; accepted %d, given back %d", j.State.Used, accepted, refunded)
	}
}
