package testkit_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"

	"go.mau.fi/whatsmeow/proto/waCommon" //nolint:depguard // what a phone writes
	"go.mau.fi/whatsmeow/proto/waE2E"    //nolint:depguard // what a phone writes
)

var texts = flag.Int("texts", 50, "how many texts go there and back, per engine")

// alphabets are what texts are made of that programs get wrong.
var alphabets = []string{
	"abc XYZ 0189", " \t\r\n\u0085\u00a0\u2028\u2029\u3000", "\x01\x02\x07\x08\x1b\x1f\x7f\u0080\u009f",
	`<>&"'\/{}[]()$%#;:|` + "`", "\u202a\u202b\u202c\u202d\u202e\u2066\u2069\u200e\u200f",
	"e\u0301\u0327\u20e3\u0489a\u0308",
	"\u200b\u200c\u200d\ufeff\u2060\u00ad", "👋🏽👨‍👩‍👧‍👦🇩🇪🏴󠁧󠁢󠁥󠁮󠁧󠁿❤️", "مرحبا שלום हिन्दी ไทย 한국어 日本語", "ﷺ İıſKßǅﬁ",
	"\U00010000\U0001f600\U0010fffd\U000e0001\ufffd\ufdd0\uffff", "𝓬𝔂𝟘Ａ＜＞＆＇",
	"--'; DROP TABLE message; %s %n %00 \\u0000 \\x00",
}

// hardText is a random text in which alphabets alternate. It begins with its number, so that
// no two are alike.
func hardText(r *rand.Rand, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%04d", n)
	for range 1 + r.IntN(8) {
		letters := []rune(alphabets[r.IntN(len(alphabets))])
		for range 1 + r.IntN(40) {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
	}
	return b.String()
}

// Texts go to a phone that answers with the same text, and come back byte for byte.
func TestHardTextsGoThereAndBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("enterprise")
		hooks := c.Receive("message.received")
		d := c.Link(phone)
		r := rand.New(rand.NewPCG(1, 2))
		want := make([]string, *texts)
		for i := range want {
			want[i] = hardText(r, i)
		}
		var group sync.WaitGroup
		for part := range slices.Chunk(want, 1+*texts/8) {
			group.Go(func() {
				for _, text := range part {
					if m := send(c, d, parrot, text); m.Content.Text != text {
						t.Errorf("%q was accepted as %q", text, m.Content.Text)
					}
				}
			})
		}
		group.Wait()
		hooks.AwaitCount(postern.MessageReceived, len(want))
		var got []string
		for _, e := range hooks.Await(postern.MessageReceived) {
			body, _ := from(e.Event["message"], "body").(string)
			got = append(got, body)
		}
		slices.Sort(got)
		for i, text := range want {
			if got[i] != text {
				t.Fatalf("%q came back as %q", text, got[i])
			}
		}
	})
}

// deep wraps a message in so many others.
func deep(levels int, m *waE2E.Message) *waE2E.Message {
	for range levels {
		m = &waE2E.Message{EphemeralMessage: &waE2E.FutureProofMessage{Message: m}}
	}
	return m
}

// quoting is a reply to a reply to a reply.
func quoting(levels int) *waE2E.Message {
	m := &waE2E.Message{Conversation: new("the end")}
	for range levels {
		m = &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
			Text: new("re"), ContextInfo: &waE2E.ContextInfo{StanzaID: new("X"), QuotedMessage: m},
		}}
	}
	return m
}

func repeated[T any](n int, one T) []T { return slices.Repeat([]T{one}, n) }

// hostile are messages that are odd, but that a phone can write; each arrives as this type.
func hostile() map[string][]*waE2E.Message {
	huge, long := new(strings.Repeat("𝓬", 1<<18)), new(strings.Repeat("𝓬", 20_000))
	many := new(uint32(math.MaxUint32))
	jid := "15550001234@s.whatsapp.net"
	return map[string][]*waE2E.Message{
		"text": {
			{Conversation: long},
			{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: long, Title: long, Description: long}},
			{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new("hi"), ContextInfo: &waE2E.ContextInfo{
				IsForwarded: new(true), ForwardingScore: many, MentionedJID: repeated(5000, jid), StanzaID: long, Participant: long,
			}}},
			deep(3, &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
				Text: new("hi"), ContextInfo: &waE2E.ContextInfo{IsForwarded: new(true), ForwardingScore: many},
			}}),
			quoting(60),
		},
		"image": {{ImageMessage: &waE2E.ImageMessage{
			Caption: huge, Mimetype: long, Width: many, Height: many, DirectPath: new("/../../v"), JPEGThumbnail: []byte("no"),
		}}},
		"document": {{DocumentMessage: &waE2E.DocumentMessage{
			FileName: new("../../etc/\u202efdp.exe"), Title: long, PageCount: many,
		}}},
		"sticker":  {{StickerMessage: &waE2E.StickerMessage{DirectPath: long}}},
		"voice":    {{AudioMessage: &waE2E.AudioMessage{PTT: new(true), Seconds: many, Waveform: make([]byte, 1<<16)}}},
		"poll":     {{PollCreationMessage: &waE2E.PollCreationMessage{Name: long, Options: repeated(10_000, option())}}},
		"contact":  {{ContactMessage: &waE2E.ContactMessage{DisplayName: long, Vcard: long}}, contacts(1000)},
		"location": {{LocationMessage: &waE2E.LocationMessage{Name: long, Address: long, URL: long}}},
		"unsupported": {deep(500, &waE2E.Message{Conversation: new("hi")}), {LocationMessage: &waE2E.LocationMessage{
			DegreesLatitude: new(math.Inf(1)), DegreesLongitude: new(math.NaN()),
		}}},
	}
}

func option() *waE2E.PollCreationMessage_Option {
	return &waE2E.PollCreationMessage_Option{OptionName: new("𝓬𝓬𝓬")}
}

func contacts(n int) *waE2E.Message {
	one := &waE2E.ContactMessage{DisplayName: new("x"), Vcard: new("BEGIN:VCARD\nTEL;waid=" + strings.Repeat("9", 99))}
	return &waE2E.Message{ContactsArrayMessage: &waE2E.ContactsArrayMessage{Contacts: repeated(n, one)}}
}

// meddling are actions on messages that their sender has no right to, or that nobody knows.
func meddling(t *testing.T, mine, foreign, poll string) (list []*waE2E.Message) {
	t.Helper()
	secret := make([]byte, 32)
	for _, id := range []string{mine, foreign, "nobody-sent-this", strings.Repeat("x", 10_000)} {
		list = append(list, edit(id, "I owe you a million"), &waE2E.Message{ProtocolMessage: revoke(id)},
			ballot(t, id, "1@lid", "2@lid", secret, "Here"))
	}
	for _, id := range []string{foreign, "nobody-sent-this"} {
		list = append(list, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: key(id), Text: new("👍")}})
	}
	return append(list,
		ballot(t, poll, "1@lid", "2@lid", secret, "Here"), // sealed for somebody else
		&waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{
			PollCreationMessageKey: &waCommon.MessageKey{ID: &poll}, Vote: &waE2E.PollEncValue{},
		}},
		&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{}},
		&waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{}},
	)
}

// Odd messages arrive as what they can be shown as, each once. Actions on what their sender has
// no right to change nothing. The device stays connected.
func TestHostileContentHarmsNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		other := k.Workspace("growth")
		foreign := send(other, other.Link("+15550007777"), reader, "not yours")
		mine := send(a.c, a.d, reader, "mine")
		var poll postern.Message
		a.c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": a.d.ID, "to": reader, "type": "poll",
			"poll": map[string]any{"question": "Where?", "options": []string{"Here", "There"}},
		}, 202, &poll)
		a.c.AwaitMessage(mine.ID, postern.Read)
		a.c.AwaitMessage(poll.ID, postern.Read)
		want := map[string]int{"text": 1, "unsupported": 6} // the last one, and votes that cannot be opened
		for kind, list := range hostile() {
			for _, m := range list {
				a.write(m)
				want[kind]++
			}
		}
		for _, m := range meddling(t, mine.NetworkID, foreign.NetworkID, poll.NetworkID) {
			a.write(m)
		}
		a.write(&waE2E.Message{Conversation: new("the last one")})
		checkHarmless(a, want)
		for _, m := range []postern.Message{mine, poll} {
			var now postern.Message
			a.c.Call("GET", "/v1/messages/"+string(m.ID), nil, 200, &now)
			if s := now.State; now.Content.Text != m.Content.Text || s.EditedAt != 0 || s.DeletedAt != 0 ||
				len(s.Reactions) != 0 {
				t.Errorf("the message is now %+v", now)
			}
		}
		if d := a.c.Device(a.d.ID); d.Status != postern.Connected {
			t.Errorf("the device is %s (%s)", d.Status, d.StatusReason)
		}
	})
}

// checkHarmless compares what arrived, and looks for events that are too large or that tell of
// an action.
func checkHarmless(a acting, want map[string]int) {
	a.t.Helper()
	all := 0
	for _, n := range want {
		all += n
	}
	a.hooks.AwaitCount(postern.MessageReceived, all)
	got := map[string]int{}
	for _, e := range a.hooks.Await(postern.MessageReceived) {
		if len(e.Body) > 1<<20 {
			a.t.Errorf("an event of %d bytes: %.200s", len(e.Body), e.Body)
		}
		kind, _ := from(e.Event["message"], "type").(string)
		got[kind]++
	}
	if !maps.Equal(got, want) {
		a.t.Errorf("arrived as %v, want %v", got, want)
	}
	for _, kind := range []postern.EventType{
		postern.MessageEdited, postern.MessageDeleted, postern.MessageReaction, postern.PollVote,
		postern.MessageUndecryptable,
	} {
		var log struct{ Data []any }
		if a.c.Call("GET", "/v1/events?type="+string(kind), nil, 200, &log); len(log.Data) > 0 {
			a.t.Errorf("events that must not be: %v", log.Data)
		}
	}
}
