package chaos

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// The actions, as the vendor's ledger names them, and the events about them.
//
//nolint:gochecknoglobals // tables
var (
	actionKinds  = []string{"reaction", "edit", "revoke", "vote", star}
	actionEvents = []string{"message.reaction", "message.edited", "message.deleted", "poll.vote", "message.starred"}
)

// star is the kind of the action that has no id on the network, because it is no message: the ledgers
// have it in common by what was done. The driver only sets stars.
const star = "star"

// isAction reports whether entries of a type in the vendor's ledger act on another message.
func isAction(kind string) bool { return slices.Contains(actionKinds, kind) }

// EventOf is the type of the event about an action of a kind.
func EventOf(kind string) string { return actionEvents[slices.Index(actionKinds, kind)] }

// deed is an action on a message by one of both ends of its chat: what the ledgers have in common.
type deed struct {
	message  string // its id
	kind     string // as in Act
	text     string // as in Act
	received bool   // the contact did it
}

// deedOf returns what an entry of the vendor says was done to a message.
func deedOf(message string, v Entry) deed {
	text := v.Body
	if v.Type == "vote" {
		text = strings.Join(v.Choices, ",")
	}
	return deed{message, v.Type, text, v.Direction == "inbound"}
}

// actions compares what was done to messages in all ledgers.
func (j *judging) actions() {
	rows := map[deed][]Action{}
	for _, a := range j.State.Actions {
		id := j.targets[target{a.Device, a.Chat, a.About}]
		switch d := (deed{id, a.Kind, a.Text, false}); {
		case id == "" || a.Direction != "outbound":
		case a.Kind == readMark:
			j.marked(a)
		case a.Phone:
			rows[d] = append(rows[d], a)
		default:
			rows[d] = append(rows[d], a)
			j.left(d, a)
		}
	}
	j.requests(rows)
	done := j.arrivals(rows)
	j.reports(rows, done)
	j.shown(done)
	j.chats()
}

// readMark is the kind of the action that tells senders that their messages were read. Its effect is judged by what is
// unread.
const readMark = "read"

// marked checks that an action that marks messages as read has come to its end.
func (j *judging) marked(a Action) {
	if a.Status == "queued" || a.Status == "sending" {
		j.report(Unfinished, a.ID, "the %s is %s", a.Kind, a.Status)
	} else if a.Status != "sent" {
		j.report(WrongEnd, a.ID, "the %s is %s", a.Kind, a.Status)
	}
}

// left checks that an accepted action has reached a phone.
func (j *judging) left(d deed, a Action) {
	v, there := j.arrived(d, a)
	switch {
	case a.Status == "queued" || a.Status == "sending":
		j.report(Unfinished, a.ID, "the %s is %s", a.Kind, a.Status)
	case a.Status != "sent":
		if !j.cameTooLate(d, a) {
			j.report(WrongEnd, a.ID, "the %s is %s", a.Kind, a.Status)
		}
	case !there || deedOf(d.message, v) != d || v.Target != a.About || v.Unreadable:
		j.report(SentUnread, a.ID, "the %s %q is sent, and no phone decrypted it", a.Kind, a.Text)
	}
}

// editsTaken is for how long after a message apps take edits of it, in milliseconds.
const editsTaken = 20 * 60 * 1000

// cameTooLate tells that an edit was given up because no app would have taken it any more.
func (j *judging) cameTooLate(d deed, a Action) bool {
	ended := a.Status == "expired" || a.Status == "failed" && a.Failure == "UNCONFIRMED"
	return a.Kind == "edit" && ended && a.Ended >= j.messages[d.message].SentAt+editsTaken
}

// arrived returns what the vendor has of an action.
func (j *judging) arrived(d deed, a Action) (v Entry, there bool) {
	if d.kind == star {
		v, there = j.stars[d]
		return v, there
	}
	v, there = j.acted[networked{j.State.Devices[a.Device], a.NetworkID}]
	return v, there
}

// requests compares the rows with what the driver has asked for.
func (j *judging) requests(rows map[deed][]Action) {
	tried, accepted := map[deed]int{}, map[deed]int{}
	for _, c := range j.Calls {
		if c.Act != nil {
			tried[deed{c.Act.Message, c.Act.Kind, c.Act.Text, false}]++
		}
		if a := c.Acted; a != nil && !a.Phone {
			accepted[deed{a.Message, a.Kind, a.Text, false}]++
		} else if a != nil && len(rows[deed{a.Message, a.Kind, a.Text, false}]) == 0 {
			j.report(SettingOff, a.Message, "the %s of the phone is not there", a.Kind)
		}
	}
	for d, n := range accepted {
		if len(rows[d]) < n {
			j.report(ActionLost, d.message, "the %s %q was accepted %d times, and there are %d", d.kind, d.text, n,
				len(rows[d]))
		}
	}
	for d, list := range rows {
		if len(list) > tried[d] {
			j.report(ActionTwice, d.message, "the %s %q was asked for %d times, and there are %d", d.kind, d.text,
				tried[d], len(list))
		}
	}
}

// arrivals returns what was done, in the vendor's order, and checks that what the vendor has of the
// gateway's actions was asked for, under one id.
func (j *judging) arrivals(rows map[deed][]Action) (done []deed) {
	for d, list := range rows {
		if slices.ContainsFunc(list, func(a Action) bool { return a.Phone }) {
			done = append(done, d)
		}
	}
	for _, v := range j.Vendor {
		if !isAction(v.Type) {
			continue
		}
		d := deedOf(j.targetOf(v), v)
		if d.received {
			if v.AckedAt != nil {
				done = append(done, d)
			}
			continue
		}
		known := func(a Action) bool { return a.NetworkID == v.NetworkID || d.kind == star }
		if list := rows[d]; len(list) == 0 {
			j.report(Unasked, v.NetworkID, "the %s %q of %s", v.Type, d.text, d.message)
		} else if i := slices.IndexFunc(list, known); i >= 0 {
			if list[i].Status == "sent" {
				done = append(done, d)
			}
		} else {
			j.report(OtherNetworkID, list[0].ID, "%s in the database, %s at the vendor", list[0].NetworkID, v.NetworkID)
			if _, twice := j.acted[networked{v.Account, list[0].NetworkID}]; twice {
				j.report(SecondNetworkID, list[0].ID, "the %s reached the vendor as %s too", v.Type, v.NetworkID)
			}
		}
	}
	return done
}

// targetOf returns the id of the message that an entry of the vendor acts on.
func (j *judging) targetOf(v Entry) string {
	for device, number := range j.State.Devices {
		if number == v.Account {
			return j.targets[target{device, v.Peer, v.Target}]
		}
	}
	return ""
}

// reports checks that each action with an effect has an event, and none has two.
func (j *judging) reports(rows map[deed][]Action, done []deed) {
	want := map[deed]int{}
	for d, list := range rows {
		for _, a := range list {
			if a.Status == "sent" && (d.kind != "revoke" && d.kind != star || want[d] == 0) {
				want[d]++
			}
		}
	}
	for _, d := range done {
		if d.received {
			want[d]++
		}
	}
	for d, n := range want {
		switch got := len(j.said[d]); {
		case got < n:
			j.report(NoEvent, d.message, "%d events about the %s %q, want %d", got, d.kind, d.text, n)
		case got > n:
			j.report(TwoEvents, d.message, "the %s %q has the events %v, want %d", d.kind, d.text, j.said[d], n)
		}
	}
}

// slot is what an action of a kind replaces: the one before by the same end.
type slot struct {
	message, kind string
	received      bool
}

func (d deed) slot() slot { return slot{d.message, d.kind, d.received} }

// shown checks that each message shows the last action of its kind, of each end, in the order in
// which the vendor had them.
func (j *judging) shown(done []deed) {
	last := map[slot]string{}
	for _, d := range done {
		last[d.slot()] = d.text
	}
	for _, v := range j.Vendor { // one that is recorded and not acknowledged may be shown already
		if isAction(v.Type) && v.Direction == "inbound" && v.AckedAt == nil {
			delete(last, deedOf(j.targetOf(v), v).slot())
		}
	}
	for at, text := range last {
		m, ok := j.messages[at.message]
		who := j.State.Devices[m.Device]
		if at.received {
			who = m.Chat
		}
		if ok && !m.Shows.has(m, at.kind, who, text) {
			j.report(ActionForgotten, m.ID, "it does not show the %s %q of %s", at.kind, text, who)
		}
	}
}

// has reports whether a message shows an action by somebody.
func (s Shows) has(m Message, kind, who, text string) bool {
	switch kind {
	case "reaction":
		return slices.Contains(s.Reactions, Reaction{who, text})
	case "vote":
		for _, v := range s.Votes {
			if v.From == who {
				return strings.Join(v.Options, ",") == text
			}
		}
		return false
	case "edit":
		return m.Edit == text
	case star:
		return s.StarredAt != ""
	}
	return s.DeletedAt != ""
}

// chats checks that actions arrived at the vendor in the order in which they were accepted, and
// after the messages that they are about.
func (j *judging) chats() {
	type chat struct{ device, id string }
	newest, starred := map[chat]Entry{}, map[deed]bool{}
	for _, a := range j.State.Actions { // in the order of n
		d := deed{j.targets[target{a.Device, a.Chat, a.About}], a.Kind, a.Text, false}
		v, there := j.arrived(d, a)
		if a.Direction != "outbound" || !there || starred[d] {
			continue
		}
		starred[d] = d.kind == star // of a star that was asked for again, the vendor's first one counts
		at := chat{a.Device, a.Chat}
		if before := newest[at]; v.N < before.N {
			j.report(Disordered, a.ID, "the %s %s came as number %d, and %s, which was accepted before it, as number %d",
				a.Kind, v.NetworkID, v.N, before.NetworkID, before.N)
		}
		if m, sent := j.readable[networked{v.Account, a.About}]; sent && m.N > v.N {
			j.report(Disordered, a.ID, "the %s %s came before its message", a.Kind, v.NetworkID)
		}
		newest[at] = v
	}
}

// hashOfOption is how a vote names an option on the network.
func hashOfOption(option string) string {
	sum := sha256.Sum256([]byte(option))
	return hex.EncodeToString(sum[:])
}
