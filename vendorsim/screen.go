package vendorsim

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
)

// defaultShown is how many of the newest messages the phone of one number shows unless Options say otherwise.
const defaultShown = 1000

// Shown is one message in the chats of a simulated phone.
type Shown struct {
	ID   string `json:"id"` // the network id
	From string `json:"from"`
	To   string `json:"to"`
	// Group is the id of the group to which the message was written, or StatusID; To is "" then.
	Group string `json:"group,omitempty"`
	// Viewers are the numbers to which a status post went; only the phone of its author knows them.
	Viewers []string `json:"viewers,omitempty"`
	// Channel is the id of the channel in which it was posted; To is "" then, and From for all but administrators.
	Channel string `json:"channel,omitempty"`
	Content
	At time.Time `json:"at"`

	Edited    bool       `json:"edited,omitempty"`
	Deleted   bool       `json:"deleted,omitempty"` // for everyone: nothing of the content is left
	Pinned    bool       `json:"pinned,omitempty"`
	Starred   bool       `json:"starred,omitempty"`   // by the phone's owner
	Reactions []Reaction `json:"reactions,omitempty"` // one for each person
	Votes     []Vote     `json:"votes,omitempty"`     // one for each person
}

// Reaction is the emoji of one person on a message.
type Reaction struct {
	From  string `json:"from"`
	Emoji string `json:"emoji"`
}

// Vote is the vote of one person in a poll.
type Vote struct {
	From    string   `json:"from"`
	Choices []string `json:"choices"`
}

// Shown returns the messages that the phone of a number shows, oldest first: those that it received
// and those that it or a companion of its number sent. See Options for how many are kept. For a number
// without messages and for text that is not a number, Shown returns no messages.
func (v *Vendor) Shown(num string) []Shown {
	n, err := parseNumber(num)
	if err != nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.screens[n]
	if s == nil {
		return nil
	}
	return append([]Shown(nil), s.messages[max(len(s.messages)-v.maxShown, 0):]...)
}

// screen holds the messages that one phone shows.
type screen struct {
	messages []Shown
	next     int64 // position of the next message, for the journal
}

// show adds a message to those that the phone of a number shows. An action changes the message that
// it concerns instead. The caller holds v.mu.
func (v records) show(n number, m Shown) {
	if isAction(m.Type) {
		v.apply(n, m)
		return
	}
	s := v.screens[n]
	if s == nil {
		s = &screen{}
		v.screens[n] = s
	}
	s.messages = append(s.messages, m)
	v.put(shownKey(n, s.next), m)
	s.next++
	if s.next > int64(v.maxShown) {
		v.remove(shownKey(n, s.next-int64(v.maxShown)-1))
	}
	if len(s.messages) > 2*v.maxShown { // at twice the limit, so that the list is copied rarely
		s.messages = append([]Shown(nil), s.messages[v.maxShown:]...)
	}
	v.notify()
}

// shown finds a message on the phone of a number, nil if it shows none with the id. The caller holds
// v.mu and does not keep the result.
func (v records) shown(n number, id string) *Shown {
	s := v.screens[n]
	if s == nil {
		return nil
	}
	for i := len(s.messages) - 1; i >= max(len(s.messages)-v.maxShown, 0); i-- {
		if s.messages[i].ID == id {
			return &s.messages[i]
		}
	}
	return nil
}

func shownKey(n number, position int64) string {
	return fmt.Sprintf("shown/%s/%016d", string(n), position)
}

// apply applies an action to the message that it concerns, if the phone of a number shows it and
// its sender may do it. The caller holds v.mu.
func (v records) apply(n number, act Shown) {
	target := v.shown(n, act.Target)
	if target == nil || act.Unreadable || target.Deleted || !v.allows(&act, target) {
		return
	}
	act.change(target)
	v.save(n, target)
}

// save writes a message of a phone that was changed. target is one that shown returned. The caller
// holds v.mu.
func (v records) save(n number, target *Shown) {
	s := v.screens[n]
	position := s.next
	for i := len(s.messages) - 1; &s.messages[i] != target; i-- {
		position--
	}
	v.put(shownKey(n, position-1), target)
	v.notify()
}

// allows reports whether the sender of an action may do it. The caller holds v.mu.
func (v records) allows(act, target *Shown) bool {
	if act.Type != TypeEdit && act.Type != TypeRevoke || act.From == target.From {
		return true
	}
	g := v.groups[target.Group]
	return act.Type == TypeRevoke && g != nil && g.isAdmin(number(act.From[1:]))
}

// change changes the message that an action concerns. It replaces lists, because callers have copies
// of the message.
func (m *Shown) change(target *Shown) {
	switch m.Type {
	case TypeReaction:
		target.Reactions = slices.DeleteFunc(slices.Clone(target.Reactions), func(r Reaction) bool {
			return r.From == m.From
		})
		if m.Body != "" {
			target.Reactions = append(target.Reactions, Reaction{From: m.From, Emoji: m.Body})
		}
	case TypeVote:
		target.Votes = slices.DeleteFunc(slices.Clone(target.Votes), func(v Vote) bool { return v.From == m.From })
		if len(m.Choices) > 0 {
			target.Votes = append(target.Votes, Vote{From: m.From, Choices: m.Choices})
		}
	case TypeEdit:
		target.rewrite(m.Body)
	case TypeRevoke:
		*target = Shown{
			ID: target.ID, From: target.From, To: target.To, Group: target.Group, Viewers: target.Viewers,
			Content: Content{Type: target.Type}, At: target.At, Deleted: true,
		}
	case TypePin:
		target.Pinned = m.Seconds > 0
	}
}

// rewrite changes the text of a message, which keeps its secret for the next edit.
func (m *Shown) rewrite(body string) {
	m.Body, m.Edited = body, true
	old := m.message()
	msg := rewritten(old, body)
	msg.MessageContextInfo = old.MessageContextInfo
	m.Raw, _ = proto.Marshal(msg) // it was decoded, so it can be encoded
}
