package testkit_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"google.golang.org/protobuf/proto"
)

// A hidden address that claims the number of somebody else does not get the messages of that person's chat, and neither
// is lost. What it claims in one workspace is not known in another.
func TestAHiddenAddressThatClaimsTwoNumbers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received")
		d := c.Link(phone)
		writes := func(who, body string, count int) {
			t.Helper()
			if _, err := k.Vendor.Send(t.Context(), phone, who, body); err != nil {
				t.Fatal(err)
			}
			hooks.AwaitCount(postern.MessageReceived, count)
		}
		writes(ann, "from ann", 1)
		writes(ben, "from ben", 2)
		if err := k.Vendor.Claim(ben, ann); err != nil {
			t.Fatal(err)
		}
		writes(ben, "as ann", 3)
		writes(ann, "still ann", 4)
		if err := k.Vendor.Claim(ben, ""); err != nil {
			t.Fatal(err)
		}
		writes(ben, "ben again", 5)
		texts := map[string]string{}
		for _, m := range messagesOf(c, d) {
			texts[m.Content.Text] = m.ChatID
		}
		if len(texts) != 5 || texts["from ann"] != ann || texts["from ben"] != ben || texts["still ann"] != ann ||
			texts["ben again"] != ben {
			t.Errorf("the messages are in %v", texts)
		}
		people := map[string]string{}
		for _, p := range contactList(c, "") {
			people[string(p.PhoneNumber)] = string(p.LID)
		}
		if len(people) != 2 || people[ann] == people[ben] {
			t.Errorf("the contacts are %v", people)
		}
		other := k.Workspace("growth")
		other.Link("+15550001112")
		if list := contactList(other, "?chatId="+url.QueryEscape(ann)); len(list) != 0 {
			t.Errorf("another workspace knows %+v", list)
		}
	})
}

// pastIn is a message that a history claims to be in a chat.
func pastIn(id, chat string, fromMe bool, participant, body string) *waHistorySync.HistorySyncMsg {
	key := &waCommon.MessageKey{ID: &id, RemoteJID: &chat, FromMe: &fromMe}
	m := &waWeb.WebMessageInfo{
		Key: key, Message: &waE2E.Message{Conversation: &body}, MessageTimestamp: proto.Uint64(uint64(time.Now().Unix()) - 60),
	}
	if participant != "" {
		key.Participant, m.Participant = &participant, &participant
	}
	return &waHistorySync.HistorySyncMsg{Message: m}
}

// A history whose messages claim other chats and other people than those that they are listed under adds messages to the
// chats that it lists, and changes none that is there. It makes no events and nothing unread, and reaches no other account.
func TestHistoryThatClaimsOtherChats(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c, other := k.Workspace("growth"), k.Workspace("growth")
		hooks := c.Receive("message.received", "message.edited", "message.deleted")
		d, foreign := linksWith(c, phone, withHistory()), linksWith(other, "+15550001112", withHistory())
		live, err := k.Vendor.Send(t.Context(), phone, ann, "live")
		if err != nil {
			t.Fatal(err)
		}
		hooks.AwaitCount(postern.MessageReceived, 1)
		sent := c.AwaitMessage(send(c, d, ann, "mine").ID, postern.Delivered)
		const annChat, benChat, theirs = "15550000011@s.whatsapp.net", "15550000012@s.whatsapp.net", "15550001112@s.whatsapp.net"
		kind := waHistorySync.HistorySync_RECENT
		list := func(chat string, messages ...*waHistorySync.HistorySyncMsg) *waHistorySync.Conversation {
			return &waHistorySync.Conversation{ID: &chat, Messages: messages}
		}
		raw, err := proto.Marshal(&waHistorySync.HistorySync{SyncType: &kind, Conversations: []*waHistorySync.Conversation{
			list(annChat,
				pastIn("A1", benChat, false, "", "listed under ann, and claims ben's chat"),
				pastIn(live, annChat, true, "", "another text for what arrived"),
				pastIn(sent.NetworkID, annChat, false, "", "another text for what was sent"),
				pastIn("A2", annChat, false, benChat, "of a third person in a direct chat")),
			list("120300000000000007@g.us", pastIn("A3", "120300000000000007@g.us", false, "", "of nobody in a group"),
				pastIn("A4", "120300000000000007@g.us", false, theirs, "of somebody in a group that the account is not in")),
			list("status@broadcast", pastIn("A5", "status@broadcast", false, annChat, "a status")),
			list("120363000000000000@newsletter", pastIn("A6", "120363000000000000@newsletter", false, "", "a channel")),
			list("", pastIn("A7", "", false, "", "nowhere")),
			list("@", pastIn("A8", "@", false, "@", "no address")),
		}})
		if err != nil {
			t.Fatal(err)
		}
		offerHistory(t, k, packed(t, raw), func(*waE2E.HistorySyncNotification) {})
		proven(t, k, hooks, 2)
		var texts []string
		for _, m := range messagesOf(c, d) {
			texts = append(texts, fmt.Sprintf("%s %s %s", m.ChatID, m.From, m.Content.Text))
		}
		slices.Sort(texts)
		want := []string{
			ann + " " + ann + " listed under ann, and claims ben's chat", ann + " " + ann + " live",
			ann + " " + ann + " of a third person in a direct chat", ann + " " + phone + " mine", ben + " " + ben + " after",
			"group:120300000000000007 +15550001112 of somebody in a group that the account is not in",
		}
		if !slices.Equal(texts, want) {
			t.Errorf("the messages are %q", texts)
		}
		if chat := (conversing{t, k, c, d}).chat(ann); chat.UnreadCount != 1 {
			t.Errorf("%d messages of ann are unread", chat.UnreadCount)
		}
		if n := len(hooks.All()); n != 3 { // with the challenge
			t.Errorf("%d deliveries", n)
		}
		if n := len(messagesOf(other, foreign)); n != 0 {
			t.Errorf("another account has %d messages", n)
		}
	})
}
