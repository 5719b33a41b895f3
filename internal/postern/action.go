package postern

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of actions on a message. An action is sent, and arrives, like a message of its
// chat, but lists do not show it: it changes the message that it is about.
const (
	KindReaction Kind = "reaction" // Content.Text is the emoji, or "" to take the reaction back
	KindEdit     Kind = "edit"     // Content.Text is the new text or caption
	KindRevoke   Kind = "revoke"   // deletes the message for everyone
	KindVote     Kind = "vote"     // Content.Poll.Options are the chosen options; none takes the vote back
	KindRead     Kind = "read"     // tells the sender that the message was read; Content.Text names others, see ReadOf
	KindPlayed   Kind = "played"   // tells the sender that the message was played
	KindPin      Kind = "pin"      // Content.Text is for how many seconds, or "" to unpin the message
	KindStar     Kind = "star"     // Content.Text is "1", or "" to take the star away; only the account sees it
)

// State is what actions have made of a message.
type State struct {
	Reactions []Reaction `json:"reactions,omitempty" nullable:"false" doc:"The reactions to the message, one for each person; absent if there are none."`
	Votes     []Vote     `json:"votes,omitempty" nullable:"false" doc:"The votes in a poll, one for each person; absent if there are none."`
	EditedAt  Time       `json:"editedAt,omitzero" format:"date-time" doc:"When the sender last changed the text, by the network's clock; absent if it is the first one." example:"2026-11-21T09:05:00.000Z"`
	DeletedAt Time       `json:"deletedAt,omitzero" format:"date-time" doc:"When the sender, or an administrator of the group, deleted the message for everyone, by the network's clock; absent if it was not deleted." example:"2026-11-21T09:06:00.000Z"`

	PinnedAt    Time `json:"pinnedAt,omitzero" format:"date-time" doc:"When somebody last pinned the message in the chat, by the network's clock; absent if it is not pinned." example:"2026-11-21T09:07:00.000Z"`
	PinnedUntil Time `json:"pinnedUntil,omitzero" format:"date-time" doc:"When the apps unpin the message by themselves; no event reports that. Absent if the message is not pinned, or if the time is not known." example:"2026-11-28T09:07:00.000Z"`

	StarredAt Time `json:"starredAt,omitzero" format:"date-time" doc:"When the account starred the message; absent if it is not starred. Nobody else sees the star." example:"2026-11-21T09:08:00.000Z"`
}

func (s State) isEmpty() bool {
	return len(s.Reactions) == 0 && len(s.Votes) == 0 && s.EditedAt == 0 && s.DeletedAt == 0 && s.PinnedAt == 0 &&
		s.StarredAt == 0
}

// Reaction is an emoji with which somebody reacts to a message.
type Reaction struct {
	From    Maybe  `json:"from" nullable:"true" doc:"Number of the person who reacts; null while the network hides it." example:"+15551234567"`
	FromLID string `json:"fromLid,omitempty" doc:"Identifies a contact who reacts, as in the chatId of an event; absent for the account itself." example:"lid:123456789012345"`
	Emoji   string `json:"emoji" doc:"The emoji; empty in the event about a reaction that was taken back." example:"👍"`
	At      Time   `json:"at" format:"date-time" nullable:"true" doc:"When, by the network's clock." example:"2026-11-21T09:05:00.000Z"`
}

// pictographs are the characters with the Unicode property Extended_Pictographic, as a class of
// a regular expression. They include those that are reserved for later emoji.
const pictographs = `[\x{00A9}\x{00AE}\x{203C}\x{2049}\x{2122}\x{2139}\x{2194}-\x{2199}\x{21A9}-\x{21AA}` +
	`\x{231A}-\x{231B}\x{2328}\x{2388}\x{23CF}\x{23E9}-\x{23F3}\x{23F8}-\x{23FA}\x{24C2}` +
	`\x{25AA}-\x{25AB}\x{25B6}\x{25C0}\x{25FB}-\x{25FE}\x{2600}-\x{2605}\x{2607}-\x{2612}` +
	`\x{2614}-\x{2685}\x{2690}-\x{2705}\x{2708}-\x{2712}\x{2714}\x{2716}\x{271D}\x{2721}\x{2728}` +
	`\x{2733}-\x{2734}\x{2744}\x{2747}\x{274C}\x{274E}\x{2753}-\x{2755}\x{2757}\x{2763}-\x{2767}` +
	`\x{2795}-\x{2797}\x{27A1}\x{27B0}\x{27BF}\x{2934}-\x{2935}\x{2B05}-\x{2B07}\x{2B1B}-\x{2B1C}` +
	`\x{2B50}\x{2B55}\x{3030}\x{303D}\x{3297}\x{3299}\x{1F000}-\x{1F0FF}\x{1F10D}-\x{1F10F}\x{1F12F}` +
	`\x{1F16C}-\x{1F171}\x{1F17E}-\x{1F17F}\x{1F18E}\x{1F191}-\x{1F19A}\x{1F1AD}-\x{1F1E5}` +
	`\x{1F201}-\x{1F20F}\x{1F21A}\x{1F22F}\x{1F232}-\x{1F23A}\x{1F23C}-\x{1F23F}\x{1F249}-\x{1F3FA}` +
	`\x{1F400}-\x{1F53D}\x{1F546}-\x{1F64F}\x{1F680}-\x{1F6FF}\x{1F774}-\x{1F77F}\x{1F7D5}-\x{1F7FF}` +
	`\x{1F80C}-\x{1F80F}\x{1F848}-\x{1F84F}\x{1F85A}-\x{1F85F}\x{1F888}-\x{1F88F}\x{1F8AE}-\x{1F8FF}` +
	`\x{1F90C}-\x{1F93A}\x{1F93C}-\x{1F945}\x{1F947}-\x{1FAFF}\x{1FC00}-\x{1FFFD}]`

// emojiPattern is the grammar of emoji in Unicode's UTS #51, section 1.4.9: a flag, a keycap, or
// pictographs, each with its skin tone, style or tags, joined by zero-width joiners.
var emojiPattern = regexp.MustCompile(`^(?:[\x{1F1E6}-\x{1F1FF}]{2}|[0-9#*]\x{FE0F}?\x{20E3}|` + picture +
	`(?:\x{200D}` + picture + `)*)$`)

const picture = pictographs + `(?:[\x{1F3FB}-\x{1F3FF}]|\x{FE0F}\x{20E3}?|[\x{E0020}-\x{E007E}]+\x{E007F})?`

// IsEmoji reports whether a text is exactly one emoji, as it is shown: a character, or several
// that are shown as one.
func IsEmoji(s string) bool { return emojiPattern.MatchString(s) }

// Vote is somebody's choice in a poll.
type Vote struct {
	From    Maybe    `json:"from" nullable:"true" doc:"Number of the person who votes; null while the network hides it." example:"+15551234567"`
	FromLID string   `json:"fromLid,omitempty" doc:"Identifies a contact who votes, as in the chatId of an event; absent for the account itself." example:"lid:123456789012345"`
	Options []string `json:"options" nullable:"false" doc:"Texts of the chosen options; empty in the event about a vote that was taken back." example:"[\"Online\"]"`
	At      Time     `json:"at" format:"date-time" nullable:"true" doc:"When, by the network's clock." example:"2026-11-21T09:05:00.000Z"`
}

// Pin is that somebody has pinned a message, or has unpinned it.
type Pin struct {
	From    Maybe  `json:"from" nullable:"true" doc:"Number of the person who pinned or unpinned the message; null while the network hides it." example:"+15551234567"`
	FromLID string `json:"fromLid,omitempty" doc:"Identifies a contact who did, as in the chatId of an event; absent for the account itself." example:"lid:123456789012345"`
	At      Time   `json:"at" format:"date-time" nullable:"true" doc:"When, by the network's clock." example:"2026-11-21T09:07:00.000Z"`
}

// DefaultPin is for how long apps pin a message unless their user chooses otherwise.
const DefaultPin = 7 * 24 * time.Hour

// IsPinDuration reports whether messages can be pinned for a duration: a day, a week or 30 days.
func IsPinDuration(d time.Duration) bool {
	return d == 24*time.Hour || d == DefaultPin || d == 30*24*time.Hour
}

// PinFor returns the content of an action that pins a message for some seconds; 0 unpins it.
func PinFor(seconds int) Content {
	if seconds == 0 {
		return Content{Kind: KindPin}
	}
	return Content{Kind: KindPin, Text: strconv.Itoa(seconds)}
}

// PinSeconds returns for how long an action pins a message; 0 unpins it.
func (c Content) PinSeconds() int {
	seconds, _ := strconv.Atoi(c.Text)
	return seconds
}

// StarOf returns the content of an action that stars a message, or takes its star away.
func StarOf(starred bool) Content {
	if starred {
		return Content{Kind: KindStar, Text: "1"}
	}
	return Content{Kind: KindStar}
}

// IsStar reports whether an action stars a message; otherwise it takes the star away.
func (c Content) IsStar() bool { return c.Kind == KindStar && c.Text != "" }

// Edit returns the action that gives content another text. Of the people mentioned so far, it mentions those whom the
// new text names, too.
func (c Content) Edit(text string) Content {
	edit := Content{Kind: KindEdit, Text: text}
	for _, who := range c.Mentions {
		if who == MentionAll || mentions(text, who) {
			edit.Mentions = append(edit.Mentions, who)
		}
	}
	return edit
}

// mentions reports whether a text contains @ and the digits of a person.
func mentions(text, who string) bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(who, "lid:"), "+")
	_, named, _ := strings.Cut(text, "@")
	for part := range strings.SplitSeq(named, "@") {
		if rest, ok := strings.CutPrefix(part, digits); ok && strings.TrimLeft(rest, "0123456789") == rest {
			return true
		}
	}
	return false
}

// edit gives content the text of an edit, with what belongs to the text.
func (c *Content) edit(by Content) {
	c.Text, c.Truncated, c.Mentions, c.LinkPreview = by.Text, by.Truncated, by.Mentions, by.LinkPreview
}

// Apply changes m by an action on it, and returns the type of the event that reports it. It
// returns false if the action has no effect, such as an edit by somebody who is not the sender.
func (m *Message) Apply(a Message) (EventType, bool) {
	at := cmp.Or(a.SentAt, a.CreatedAt)
	if m.hasNewer(a, at) {
		return "", false
	}
	switch own := m.isBy(a); a.Content.Kind {
	case KindReaction:
		m.react(Reaction{From: a.From, FromLID: a.actor(), Emoji: a.Content.Text, At: at})
		return MessageReaction, true
	case KindVote:
		if m.Content.Poll == nil || a.Content.Poll == nil {
			return "", false
		}
		chosen := m.Content.Poll.chosen(a.Content.Poll.Options)
		if len(chosen) == 0 && len(a.Content.Poll.Options) > 0 { // for options that were added later
			return "", false
		}
		m.vote(Vote{From: a.From, FromLID: a.actor(), Options: chosen, At: at})
		return PollVote, true
	case KindEdit:
		if !own || m.State.DeletedAt != 0 || at < m.State.EditedAt {
			return "", false
		}
		m.Content.edit(a.Content)
		m.State.EditedAt = at
		return MessageEdited, true
	case KindRevoke:
		if !own {
			return "", false
		}
		return m.delete(at)
	case KindPin:
		return m.pin(a.Content.PinSeconds(), at)
	case KindStar:
		return m.star(a.Content.IsStar(), at)
	default:
		return "", false
	}
}

// hasNewer reports whether m has a later reaction or vote of the contact who sent a, which was received late. The times
// of both are those of the network.
func (m *Message) hasNewer(a Message, at Time) bool {
	if a.Direction != Inbound {
		return false
	}
	switch a.Content.Kind {
	case KindReaction:
		return slices.ContainsFunc(m.State.Reactions, func(o Reaction) bool {
			return o.At > at && isSame(o.From, o.FromLID, a.From, a.actor())
		})
	case KindVote:
		return slices.ContainsFunc(m.State.Votes, func(o Vote) bool {
			return o.At > at && isSame(o.From, o.FromLID, a.From, a.actor())
		})
	default:
		return false
	}
}

// Moderate is like [Message.Apply] for the action of an administrator of the message's group, who may delete what others
// have written.
func (m *Message) Moderate(a Message) (EventType, bool) {
	if a.Content.Kind == KindRevoke && IsGroup(m.ChatID) {
		return m.delete(cmp.Or(a.SentAt, a.CreatedAt))
	}
	return m.Apply(a)
}

func (m *Message) delete(at Time) (EventType, bool) {
	if m.State.DeletedAt != 0 {
		return "", false
	}
	m.State.DeletedAt = at
	return MessageDeleted, true
}

// Moderates reports whether an action on a message takes an administrator of its group, because it deletes what somebody
// else has written.
func (m *Message) Moderates(a Message) bool {
	return a.Content.Kind == KindRevoke && IsGroup(m.ChatID) && !m.isBy(a)
}

// isBy reports whether a message and an action are of the same person. In a direct chat, only one person can
// write in each direction.
func (m *Message) isBy(a Message) bool {
	several := IsGroup(m.ChatID) || m.ChatID == StatusChat
	return m.Direction == a.Direction &&
		(m.Direction == Outbound || !several || isSame(m.From, m.FromLID, a.From, a.FromLID))
}

// actor identifies the contact whose action a is; "" for the account itself.
func (m Message) actor() string {
	if m.FromLID == "" {
		return ""
	}
	return ChatOfLID(m.FromLID)
}

// react replaces the reaction of a person.
func (m *Message) react(r Reaction) {
	m.State.Reactions = slices.DeleteFunc(slices.Clone(m.State.Reactions), func(o Reaction) bool {
		return isSame(o.From, o.FromLID, r.From, r.FromLID)
	})
	if r.Emoji != "" && len(m.State.Reactions) < MaxMentions {
		m.State.Reactions = append(m.State.Reactions, r)
	}
}

// pin pins the message for some seconds; 0 unpins it.
func (m *Message) pin(seconds int, at Time) (EventType, bool) {
	switch {
	case m.State.DeletedAt != 0:
		return "", false
	case seconds > 0:
		m.State.PinnedAt, m.State.PinnedUntil = at, at.Add(time.Duration(seconds)*time.Second)
		return MessagePinned, true
	case m.State.PinnedAt == 0:
		return "", false
	}
	m.State.PinnedAt, m.State.PinnedUntil = 0, 0
	return MessageUnpinned, true
}

// star stars the message, or takes its star away.
func (m *Message) star(starred bool, at Time) (EventType, bool) {
	switch {
	case starred == (m.State.StarredAt != 0), starred && m.State.DeletedAt != 0:
		return "", false
	case starred:
		m.State.StarredAt = at
		return MessageStarred, true
	}
	m.State.StarredAt = 0
	return MessageUnstarred, true
}

// vote replaces the vote of a person.
func (m *Message) vote(v Vote) {
	m.State.Votes = slices.DeleteFunc(slices.Clone(m.State.Votes), func(o Vote) bool {
		return isSame(o.From, o.FromLID, v.From, v.FromLID)
	})
	if len(v.Options) > 0 && len(m.State.Votes) < MaxMentions {
		m.State.Votes = append(m.State.Votes, v)
	}
}

// isSame reports whether two are one person, whose number may have become known meanwhile.
func isSame(from Maybe, lid string, other Maybe, otherLID string) bool {
	return lid == otherLID && (lid != "" || from == other) || from != "" && from == other
}

// HashOfOption is how a vote names an option on the network: the SHA-256 of its text, in hex.
func HashOfOption(option string) string {
	sum := sha256.Sum256([]byte(option))
	return hex.EncodeToString(sum[:])
}

// chosen returns the options that a vote names, by their texts or by their hashes.
func (p *Poll) chosen(names []string) []string {
	options := []string{}
	for _, option := range p.Options {
		if slices.Contains(names, option) || slices.Contains(names, HashOfOption(option)) {
			options = append(options, option)
		}
	}
	return options
}

// TallyOf counts the votes for each option of a poll, in the order of the options.
func (m Message) TallyOf() []Tally {
	if m.Content.Poll == nil || len(m.State.Votes) == 0 {
		return nil
	}
	list := make([]Tally, len(m.Content.Poll.Options))
	for i, option := range m.Content.Poll.Options {
		list[i].Option = option
		for _, v := range m.State.Votes {
			if slices.Contains(v.Options, option) {
				list[i].Votes++
			}
		}
	}
	return list
}

// Tally is how many people have chosen an option of a poll.
type Tally struct {
	Option string `json:"option" doc:"Text of the option." example:"Online"`
	Votes  int    `json:"votes" doc:"How many people have chosen it." example:"3"`
}

// ActionObject is the object of message.reaction, message.edited, message.deleted,
// message.pinned, message.unpinned, message.starred, message.unstarred and poll.vote: the message
// as the action has left it, and what the action was.
type ActionObject struct {
	MessageObject

	Reaction *Reaction `json:"reaction,omitempty" doc:"The reaction that the event reports; absent from other events."`
	Vote     *Vote     `json:"vote,omitempty" doc:"The vote that the event reports; absent from other events."`
	Pin      *Pin      `json:"pin,omitempty" doc:"Who pinned or unpinned the message; absent from other events."`
	Deletion *Deletion `json:"deletion,omitempty" doc:"The administrator of the group who deleted the message of somebody else; absent from other events."`
}

// Deletion is that an administrator of a group has deleted what somebody else wrote.
type Deletion struct {
	From    Maybe  `json:"from" nullable:"true" doc:"Number of the administrator; null while the network hides it." example:"+15551234567"`
	FromLID string `json:"fromLid,omitempty" doc:"Identifies the administrator, as in the chatId of an event; absent for the account itself." example:"lid:123456789012345"`
	At      Time   `json:"at" format:"date-time" nullable:"true" doc:"When, by the network's clock." example:"2026-11-21T09:07:00.000Z"`
}

// ActionEvent returns the event about an action, after [Message.Apply].
func (m Message) ActionEvent(t EventType, a Message) (Event, error) {
	o := ActionObject{MessageObject: m.Object()}
	at := cmp.Or(a.SentAt, a.CreatedAt)
	switch t {
	case MessageReaction:
		o.Reaction = &Reaction{From: a.From, FromLID: a.actor(), Emoji: a.Content.Text, At: at}
	case MessagePinned, MessageUnpinned:
		o.Pin = &Pin{From: a.From, FromLID: a.actor(), At: at}
	case MessageDeleted:
		if m.Moderates(a) {
			o.Deletion = &Deletion{From: a.From, FromLID: a.actor(), At: at}
		}
	case PollVote:
		o.Vote = &Vote{From: a.From, FromLID: a.actor(), Options: m.Content.Poll.chosen(a.Content.Poll.Options), At: at}
	default: // the message says it all
	}
	b, err := EncodeJSON(o)
	return Event{
		ID: NewEventID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Type: t, Subject: "message", Object: b,
		ChatID: m.ChatID, MessageID: m.ID,
	}, err
}
