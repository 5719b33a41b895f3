package postern

import (
	"fmt"
	"slices"
	"testing"
)

// mine is a message that the account sent, and theirs one that a contact sent.
func mine() Message {
	return Message{Direction: Outbound, From: "+15550001111", Content: Text("hello"), CreatedAt: 1000}
}

func by(direction string, kind Kind, text string) Message {
	a := Message{Direction: direction, From: "+15550001111", SentAt: 2000, Content: Content{Kind: kind, Text: text}}
	if direction == Inbound {
		a.From, a.FromLID = "+15551234567", "123456789"
	}
	return a
}

func TestActionsChangeTheirMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		actions []Message
		want    string // event, text, reactions, and whether it was edited and deleted
	}{
		{"a reaction", []Message{by(Inbound, KindReaction, "👍")}, "message.reaction hello [👍] false false"},
		{"two of one person", []Message{by(Inbound, KindReaction, "👍"), by(Inbound, KindReaction, "🎉")}, "message.reaction hello [🎉] false false"},
		{"two of two people", []Message{by(Inbound, KindReaction, "👍"), by(Outbound, KindReaction, "🎉")}, "message.reaction hello [👍 🎉] false false"},
		{"one taken back", []Message{by(Inbound, KindReaction, "👍"), by(Inbound, KindReaction, "")}, "message.reaction hello [] false false"},
		{"an edit", []Message{by(Outbound, KindEdit, "hi")}, "message.edited hi [] true false"},
		{"an edit by somebody else", []Message{by(Inbound, KindEdit, "hi")}, " hello [] false false"},
		{"a deletion", []Message{by(Outbound, KindRevoke, "")}, "message.deleted hello [] false true"},
		{"a deletion by somebody else", []Message{by(Inbound, KindRevoke, "")}, " hello [] false false"},
		{"a second deletion", []Message{by(Outbound, KindRevoke, ""), by(Outbound, KindRevoke, "")}, " hello [] false true"},
		{"an edit after the deletion", []Message{by(Outbound, KindRevoke, ""), by(Outbound, KindEdit, "hi")}, " hello [] false true"},
		{"a vote in what is no poll", []Message{by(Inbound, KindVote, "")}, " hello [] false false"},
		{"no action", []Message{by(Inbound, KindText, "hi")}, " hello [] false false"},
	} {
		m, kind := mine(), EventType("")
		for _, a := range tt.actions {
			kind, _ = m.Apply(a)
		}
		var emoji []string
		for _, r := range m.State.Reactions {
			emoji = append(emoji, r.Emoji)
		}
		got := fmt.Sprint(kind, " ", m.Content.Text, " ", emoji, m.State.EditedAt != 0, m.State.DeletedAt != 0)
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// An older edit that arrives late does not undo a newer one.
func TestLateEditIsIgnored(t *testing.T) {
	t.Parallel()
	m, late := mine(), by(Outbound, KindEdit, "older")
	m.Apply(by(Outbound, KindEdit, "newer"))
	if late.SentAt = 1500; m.Content.Text != "newer" {
		t.Fatal(m.Content.Text)
	}
	if _, ok := m.Apply(late); ok || m.Content.Text != "newer" {
		t.Errorf("after a late edit the text is %q", m.Content.Text)
	}
}

// What belongs to the text is replaced with it.
func TestEditReplacesWhatBelongsToTheText(t *testing.T) {
	t.Parallel()
	m := mine()
	m.Content.Truncated, m.Content.LinkPreview, m.Content.Mentions = true, &LinkPreview{}, []string{"+1555"}
	edit := by(Outbound, KindEdit, "")
	edit.Content = m.Content.Edit("@15550, hi")
	m.Apply(edit)
	if c := m.Content; c.Text != "@15550, hi" || c.Truncated || c.LinkPreview != nil || len(c.Mentions) != 0 {
		t.Errorf("the content is %+v", c)
	}
	edit.Content = Content{Kind: KindEdit, Text: "cut", Truncated: true, Extra: Extra{Mentions: []string{"lid:7"}}}
	m.Apply(edit)
	if c := m.Content; !c.Truncated || len(c.Mentions) != 1 {
		t.Errorf("the content is %+v", c)
	}
	m.Content.Mentions = []string{"lid:7", "all", "+1555", "+16"}
	if got := m.Content.Edit("16 for @7 and @1555!").Mentions; !slices.Equal(got, []string{"lid:7", "all", "+1555"}) {
		t.Errorf("the edit mentions %v", got)
	}
}

// A pin lasts from its own time, and is replaced by the next one.
func TestPinsReplaceEachOther(t *testing.T) {
	t.Parallel()
	m := mine()
	for i, tt := range []struct {
		seconds int
		want    EventType
	}{{0, ""}, {86400, MessagePinned}, {604800, MessagePinned}, {0, MessageUnpinned}, {0, ""}} {
		a := by(Inbound, KindPin, "")
		a.Content = PinFor(tt.seconds)
		kind, ok := m.Apply(a)
		until := Time(0)
		if tt.seconds > 0 {
			until = a.SentAt + Time(tt.seconds)*1000
		}
		if kind != tt.want || ok != (tt.want != "") || m.State.PinnedUntil != until {
			t.Errorf("action %d: %q, pinned until %d, want %q and %d", i, kind, m.State.PinnedUntil, tt.want, until)
		}
	}
	m.Apply(by(Outbound, KindRevoke, ""))
	if kind, ok := m.Apply(by(Inbound, KindPin, "86400")); ok {
		t.Errorf("the pin of a deleted message gives %q", kind)
	}
}

// A star that changes nothing has no effect. A deleted message loses its star, and gets none.
func TestStarsAreSetAndRemoved(t *testing.T) {
	t.Parallel()
	m := mine()
	star := func(on bool) (EventType, bool) {
		a := by(Outbound, KindStar, "")
		a.Content = StarOf(on)
		return m.Apply(a)
	}
	for i, tt := range []struct {
		on   bool
		want EventType
	}{{false, ""}, {true, MessageStarred}, {true, ""}, {false, MessageUnstarred}, {false, ""}, {true, MessageStarred}} {
		kind, ok := star(tt.on)
		if kind != tt.want || ok != (tt.want != "") || (m.State.StarredAt != 0) != tt.on {
			t.Errorf("action %d: %q, starred at %d, want %q", i, kind, m.State.StarredAt, tt.want)
		}
	}
	m.Apply(by(Outbound, KindRevoke, ""))
	if kind, ok := star(false); kind != MessageUnstarred || !ok {
		t.Errorf("the star of a deleted message is removed with %q", kind)
	}
	if kind, ok := star(true); ok {
		t.Errorf("the star of a deleted message gives %q", kind)
	}
}

// A person whose number becomes known has one vote.
func TestVotesAreCountedByPerson(t *testing.T) {
	t.Parallel()
	m := mine()
	m.Content = poll("?", "a", "b", "c")
	vote := func(from Maybe, lid string, options ...string) {
		a := by(Inbound, KindVote, "")
		a.From, a.FromLID, a.Content.Poll = from, lid, &Poll{Options: options}
		m.Apply(a)
	}
	vote("", "1", HashOfOption("a"))
	vote("+15551234567", "1", HashOfOption("b"), "no hash of an option")
	vote("", "2", HashOfOption("b"), HashOfOption("c"))
	want := []Tally{{"a", 0}, {"b", 2}, {"c", 1}}
	if got := m.TallyOf(); !slices.Equal(got, want) || len(m.State.Votes) != 2 {
		t.Errorf("tally = %v of %d votes, want %v of 2", got, len(m.State.Votes), want)
	}
	vote("+15551234567", "1", HashOfOption("added later"))
	if len(m.State.Votes) != 2 {
		t.Errorf("after a vote for an option that is not known, there are %d votes", len(m.State.Votes))
	}
	vote("+15551234567", "1")
	if len(m.State.Votes) != 1 {
		t.Errorf("after one was taken back, there are %d votes", len(m.State.Votes))
	}
}

// What a contact did earlier and is received late does not undo what they have done since.
func TestLateVotesAndReactionsChangeNothing(t *testing.T) {
	t.Parallel()
	m := mine()
	m.Content = poll("?", "a", "b")
	act := func(kind Kind, at Time, what string) bool {
		a := by(Inbound, kind, what)
		if a.SentAt = at; kind == KindVote {
			a.Content.Poll = &Poll{Options: []string{HashOfOption(what)}}
		}
		_, done := m.Apply(a)
		return done
	}
	for _, kind := range []Kind{KindVote, KindReaction} {
		if !act(kind, 2000, "b") || act(kind, 1000, "a") || !act(kind, 2000, "b") {
			t.Errorf("%s: the earlier one counts, or one of the same second does not", kind)
		}
	}
	if len(m.State.Votes) != 1 || m.State.Votes[0].Options[0] != "b" || len(m.State.Reactions) != 1 ||
		m.State.Reactions[0].Emoji != "b" {
		t.Errorf("the message has %+v", m.State)
	}
}

func TestOneEmojiIsAReaction(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"👍", "👍🏽", "❤️", "❤", "🏳️\u200d🌈", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "1️⃣", "#⃣", "©", "🫩", "🙂\u200d↔️", "🧑\u200d🧑\u200d🧒",
		"🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "👁️\u200d🗨️", "👩🏿\u200d❤️\u200d💋\u200d👨🏻",
	} {
		if !IsEmoji(s) {
			t.Errorf("%q (%+q) is no emoji", s, s)
		}
	}
	for _, s := range []string{
		"", "a", "1", "#", "ok", "漢", "👍👍", "👍 ", " 👍", "👍\n", "👍a", "🇩", "🇩🇪🇫", "👍\u200d", "\u200d", "\ufe0f", "🏽", "👍\u0301",
		"👍\ufe0e", ":)", "1\ufe0f", "🏴\U000e0067",
	} {
		if IsEmoji(s) {
			t.Errorf("%q (%+q) is an emoji", s, s)
		}
	}
}
