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

// Violation is one broken promise.
type Violation struct {
	Rule   Rule
	ID     string // of the message, event or key it is about
	Detail string
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Rule, v.ID, v.Detail) }

// Evidence is everything that the judge examines.
type Evidence struct {
	Calls    []Call   // the driver's ledger
	Posts    []Post   // the receiver's ledger
	Vendor   []Entry  // the vendor's ledger
	State    State    // the database, after everything had settled and the gateway was stopped
	Leaks    []Leak   // secrets and texts in the gateway's log
	Followed Followed // by a reader of the log; empty if there was none
	Woken    Woken    // by another server, if it was tried

	// What the vendor has after everything had settled: the groups of an account, and what it has set for its chats.
	Groups   map[string][]vendorsim.Group
	Settings map[string]map[string]vendorsim.ChatSettings

	Swept bool // the storage was swept after everything had settled

	// Interrupted is the maximum number of attempts that a kill or a fault cut short
	// before a frame left. The gateway cannot know that none did, so it does not refund
	// them.
	Interrupted int

	// ClockAhead is by how much the clock of the gateway was ahead of the vendor's at most. What was to be sent at a
	// time leaves that much early.
	ClockAhead time.Duration
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
	j.bytes()
	j.states()
	j.groups()
	j.settings()
	j.events()
	j.posts()
	j.quota()
	j.log()
	j.followed()
	j.woken()
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
	stars     map[deed]Entry         // that reached the vendor, as they did first
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
		stars: map[deed]Entry{},
	}
	j.Vendor = withQuestions(e.Vendor)
	j.indexCalls()
	j.indexRows()
	j.indexVendor()
	j.indexEvents()
	return j
}

func (j *judging) indexCalls() {
	for _, c := range j.Calls {
		if c.Ask != nil {
			j.asks[c.Ask.Key], j.asked[c.Ask.Body] = *c.Ask, *c.Ask
		}
		if c.Canceled != "" {
			j.canceled[c.Canceled] = true
		}
	}
}

func (j *judging) indexRows() {
	for _, m := range j.State.Messages {
		j.messages[m.ID], j.targets[target{m.Device, m.Chat, m.NetworkID}] = m, m.ID
		if m.Direction == "outbound" {
			j.written[m.Body] = append(j.written[m.Body], m)
		} else {
			at := networked{j.State.Devices[m.Device], m.NetworkID}
			j.taken[at] = append(j.taken[at], m.ID)
		}
	}
	for _, a := range j.State.Actions {
		if a.Direction == "inbound" {
			at := networked{j.State.Devices[a.Device], a.NetworkID}
			j.taken[at] = append(j.taken[at], a.ID)
		}
	}
}

func (j *judging) indexVendor() {
	for _, v := range j.Vendor {
		switch {
		case v.Direction == "inbound":
			j.given[networked{v.Account, v.NetworkID}] = true
		case isMessage(v.Type):
			j.readable[networked{v.Account, v.NetworkID}] = v
		case v.Type == star:
			if d := deedOf(j.targetOf(v), v); j.stars[d].Type == "" {
				j.stars[d] = v
			}
		case isAction(v.Type):
			j.acted[networked{v.Account, v.NetworkID}] = v
		}
	}
}

// indexEvents needs the indexes of what the events are about.
func (j *judging) indexEvents() {
	for _, ev := range j.State.Events {
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
	for _, p := range j.Posts {
		j.posted[p.EventID]++
		if p.Answer/100 == 2 {
			j.delivered[p.EventID] = true
		}
	}
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
	case "message.starred":
		d.kind, d.text, from = star, "1", j.State.Devices[e.Device]
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
		if !asked || ask.To != chatOf(v) || j.State.Devices[ask.Device] != v.Account {
			j.report(Unasked, v.NetworkID, "from %s to %s", v.Account, chatOf(v))
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, ask.SendAt); err == nil && v.ArrivedAt.Add(j.ClockAhead).Before(at) {
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

// chatOf returns to whom a message was sent: a number, or a group.
func chatOf(v Entry) string {
	if v.Group != "" {
		return "group:" + v.Group
	}
	return v.Peer
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
			} else if v.Group == "" { // of a group, the entry does not say who has confirmed it
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
