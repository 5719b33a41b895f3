package testkit_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// conversing is a device whose chats are read.
type conversing struct {
	t *testing.T
	k *testkit.Kit
	c *testkit.Client
	d postern.Device
}

func newConversing(t *testing.T, k *testkit.Kit) conversing {
	t.Helper()
	c := k.Workspace("growth")
	return conversing{t, k, c, c.Link(phone)}
}

// chat returns a chat.
func (v conversing) chat(id string) (chat postern.Chat) {
	v.t.Helper()
	if a := v.c.Do("GET", path(v.d, "/chats/"+id), nil); a.Status == 200 {
		a.JSON(v.k, &chat)
	}
	return chat
}

// write lets somebody write messages, and waits until they are unread.
func (v conversing) write(who string, n int) (networkIDs []string) {
	v.t.Helper()
	before := v.chat(who).UnreadCount
	for i := range n {
		id, err := v.k.Vendor.Send(v.t.Context(), phone, who, fmt.Sprint("message ", i+1))
		if err != nil {
			v.t.Fatal(err)
		}
		networkIDs = append(networkIDs, id)
	}
	v.unread(who, before+n)
	return networkIDs
}

// unread waits until a chat has a number of unread messages.
func (v conversing) unread(chat string, want int) {
	v.t.Helper()
	testkit.Eventually(v.t, fmt.Sprint(want, " unread messages of ", chat), func() (bool, any) {
		got := v.chat(chat).UnreadCount
		return got == want, got
	})
}

// list returns the ids of listed chats.
func (v conversing) list(query string) (ids []string) {
	v.t.Helper()
	var list struct{ Data []postern.Chat }
	v.c.Call("GET", "/v1/chats"+query, nil, 200, &list)
	for _, c := range list.Data {
		ids = append(ids, c.ChatID)
	}
	return ids
}

// readIn returns the network ids of what was received and is read at the vendor.
func (v conversing) readIn() (ids []string) {
	for _, e := range v.k.Vendor.Ledger(0, 0) {
		if e.Direction == vendorsim.Inbound && e.ReadAt != nil {
			ids = append(ids, e.NetworkID)
		}
	}
	return ids
}

// A chat lists its newest message and what is unread. Marking it as read confirms each message once.
func TestChatsAreReadOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		v.c.Call("GET", path(v.d, "/chats/"+ann), nil, 404, nil)
		first := v.write(ann, 3)
		v.write(reader, 1)
		if got := v.list(""); !slices.Equal(got, []string{reader, ann}) {
			t.Errorf("the chats are %q", got)
		}
		var chat postern.Chat
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/read"), nil, 202, &chat)
		if chat.UnreadCount != 0 || chat.Kind != postern.DirectChat || chat.LatestMessage.Content.Text != "message 3" {
			t.Errorf("the chat is %+v", chat)
		}
		testkit.Eventually(t, "all are confirmed", func() (bool, any) {
			got := v.readIn()
			return len(got) == 3, got
		})
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/read"), map[string]any{}, 202, nil)
		if got := v.list("?unread=true&deviceId=" + string(v.d.ID)); !slices.Equal(got, []string{reader}) {
			t.Errorf("unread are %q", got)
		}
		second := v.write(ann, 3)
		id := v.message(second[1])
		v.c.Call("POST", "/v1/messages/"+id+"/read", nil, 202, nil)
		v.unread(ann, 1)
		if got := v.list(""); !slices.Equal(got, []string{ann, reader}) {
			t.Errorf("the chats are %q", got)
		}
		v.c.Call("POST", path(v.d, "/pause"), nil, 200, nil)
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/read"), nil, 409, nil)
		if slices.Contains(v.readIn(), second[2]) || len(first) != 3 {
			t.Error("a message was confirmed that nobody has read")
		}
	})
}

// message returns the id of a message by its id on the network.
func (v conversing) message(networkID string) string {
	v.t.Helper()
	var list struct{ Data []postern.Message }
	v.c.Call("GET", "/v1/messages?direction=inbound", nil, 200, &list)
	for _, m := range list.Data {
		if m.NetworkID == networkID {
			return string(m.ID)
		}
	}
	v.t.Fatalf("no message %s", networkID)
	return ""
}

// What the account reads on its phone is read here, in direct chats and in groups, and in groups each writer is told.
func TestReadingOnThePhone(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		ids := v.write(ann, 3)
		if err := k.Vendor.PhoneRead(phone, false, ids[:2]...); err != nil {
			t.Fatal(err)
		}
		v.unread(ann, 1)
		if err := k.Vendor.PhoneRead(phone, true, ids[2]); err != nil {
			t.Fatal(err)
		}
		v.unread(ann, 0)
		g, chat := newGroup(t, k, ann, phone, reader)
		for i, who := range []string{ann, reader, ann} {
			writeIn(t, k, g, who, fmt.Sprint(i))
		}
		v.unread(chat, 3)
		v.c.Call("POST", path(v.d, "/chats/"+chat+"/read"), nil, 202, nil)
		testkit.Eventually(t, "all are confirmed", func() (bool, any) {
			got := v.readIn()
			return len(got) == 6, got
		})
	})
}

// Messages that arrive while several callers mark the chat as read are counted exactly.
func TestUnreadIsExactWhileOthersRead(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		v.write(ann, 1)
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				for range 10 {
					if a := v.c.Do("POST", path(v.d, "/chats/"+ann+"/read"), nil); a.Status != 202 {
						t.Errorf("reading is answered %d %s", a.Status, a.Body)
					}
				}
			})
		}
		var last string
		for i := range 40 {
			id, err := k.Vendor.Send(t.Context(), phone, ann, fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			last = id
		}
		work.Wait()
		testkit.Eventually(t, "the last message arrived", func() (bool, any) {
			m := v.chat(ann).LatestMessage
			return m != nil && m.NetworkID == last, m
		})
		var list struct{ Data []postern.Message }
		v.c.Call("GET", "/v1/messages?direction=inbound&limit=200", nil, 200, &list)
		chat := v.chat(ann)
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/read"), nil, 202, nil)
		want := []string{}
		for _, m := range list.Data {
			want = append(want, m.NetworkID)
		}
		testkit.Eventually(t, "each message is confirmed", func() (bool, any) {
			got := v.readIn()
			slices.Sort(got)
			slices.Sort(want)
			return slices.Equal(got, want), len(got)
		})
		if len(want) != 41 || chat.UnreadCount > 40 {
			t.Errorf("%d messages, %d unread", len(want), chat.UnreadCount)
		}
		v.unread(ann, 0)
	})
}

// setting waits until a chat is as it should be here and on the phone.
func (v conversing) setting(chat string, archived, muted bool) {
	v.t.Helper()
	testkit.Eventually(v.t, fmt.Sprintf("archived %t, muted %t", archived, muted), func() (bool, any) {
		got := v.chat(chat)
		phone, err := v.k.Vendor.PhoneChats().Settings(phone, chat)
		return err == nil && got.Archived == archived && got.Muted == muted && phone.Archived == archived &&
			phone.Muted == muted, []any{got.Archived, got.Muted, phone, err}
	})
}

// Chats are archived and muted here and on the phone, also when both change something at once, and while the gateway
// is down.
func TestChatsAreArchivedAndMuted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		v.write(ann, 1)
		v.write(reader, 1)
		var chat postern.Chat
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/archive"), map[string]any{"archived": true}, 200, &chat)
		if !chat.Archived || chat.Muted || chat.UnreadCount != 1 {
			t.Errorf("the chat is %+v", chat)
		}
		v.setting(ann, true, false)
		if got := v.list("?archived=true"); !slices.Equal(got, []string{ann}) {
			t.Errorf("archived are %q", got)
		}
		if got := v.list("?archived=false"); !slices.Equal(got, []string{reader}) {
			t.Errorf("not archived are %q", got)
		}
		for range 2 { // in regular_low, and in regular_high
			if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultStateConflict); err != nil {
				t.Fatal(err)
			}
		}
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/archive"), map[string]any{"archived": false}, 200, nil)
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/mute"), map[string]any{"muted": true}, 200, &chat)
		if !chat.Muted || chat.MutedUntil != 0 || chat.Archived {
			t.Errorf("the chat is %+v", chat)
		}
		v.setting(ann, false, true)
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/mute"),
			map[string]any{"muted": true, "until": "2090-01-01T00:00:00Z"}, 200, &chat)
		if !chat.Muted || chat.MutedUntil.String() != "2090-01-01T00:00:00.000Z" {
			t.Errorf("the chat is %+v", chat)
		}
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/mute"),
			map[string]any{"muted": true, "until": "2020-01-01T00:00:00Z"}, 422, nil)
		v.c.Call("POST", path(v.d, "/chats/nobody/mute"), map[string]any{"muted": true}, 404, nil)
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/mute"), map[string]any{"muted": false}, 200, nil)
		v.setting(ann, false, false)

		v.phoneSets(ann, true)
		v.setting(ann, true, true)
		v.read(ann)
		k.Stop()
		v.phoneSets(ann, false)
		k.Boot()
		v.setting(ann, false, false)
		v.c.Call("POST", path(v.d, "/pause"), nil, 200, nil)
		v.c.Call("POST", path(v.d, "/chats/"+ann+"/archive"), map[string]any{"archived": true}, 409, nil)
	})
}

// phoneSets archives and mutes a chat on the phone, or ends both.
func (v conversing) phoneSets(chat string, on bool) {
	v.t.Helper()
	err := v.k.Vendor.PhoneChats().Archive(v.t.Context(), phone, chat, on)
	if err == nil {
		err = v.k.Vendor.PhoneChats().Mute(v.t.Context(), phone, chat, on, 0)
	}
	if err != nil {
		v.t.Fatal(err)
	}
}

// read marks a chat with one unread message as read on the phone, which sends no receipts.
func (v conversing) read(chat string) {
	v.t.Helper()
	v.unread(chat, 1)
	v.markRead(chat)
	v.unread(chat, 0)
}

// markRead marks a chat as read on the phone up to its newest message.
func (v conversing) markRead(chat string) {
	v.t.Helper()
	at := v.chat(chat).LatestMessage.SentAt.Std()
	if err := v.k.Vendor.PhoneChats().MarkRead(v.t.Context(), phone, chat, at); err != nil {
		v.t.Fatal(err)
	}
}

// What is damaged in the app state of one account is not believed, and read again. Another account stays connected, and
// its settings follow its phone meanwhile.
func TestDamagedSettingsOfChatsAreReadAgain(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	v := newConversing(t, k)
	v.write(ann, 1)
	other := conversing{t, k, k.Workspace("growth"), postern.Device{}}
	other.d = other.c.Link("+15550001112")
	if _, err := k.VendorOf(other.c.Workspace).Send(t.Context(), "+15550001112", ann, "hello"); err != nil {
		t.Fatal(err)
	}
	other.unread(ann, 1)
	connected := other.c.Device(other.d.ID).ConnectedAt
	v.c.Call("POST", path(v.d, "/chats/"+ann+"/archive"), map[string]any{"archived": true}, 200, nil)
	for damage := range 5 {
		fault := fmt.Sprintf("%s:%d", vendorsim.FaultStateDamaged, damage)
		if err := k.Vendor.Fault(t.Context(), phone, vendorsim.Fault(fault)); err != nil {
			t.Fatal(err)
		}
		v.c.Call("POST", path(v.d, "/pause"), nil, 200, nil)
		v.phoneSets(ann, damage%2 == 1)
		v.markRead(ann)
		v.c.Call("POST", path(v.d, "/resume"), nil, 200, nil)
		v.c.Await(v.d.ID, postern.Connected)
		v.setting(ann, damage%2 == 1, damage%2 == 1)
		v.unread(ann, 0)
		v.write(ann, 1)
		on := damage%2 == 0
		if err := k.VendorOf(other.c.Workspace).PhoneChats().Archive(t.Context(), "+15550001112", ann, on); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the other account's setting", func() (bool, any) {
			got := other.chat(ann).Archived
			return got == on, got
		})
	}
	if now := other.c.Device(other.d.ID); now.Status != postern.Connected || now.ConnectedAt != connected {
		t.Errorf("the other device is %s since %s, and was connected since %s", now.Status, now.ConnectedAt, connected)
	}
}

// What the phone sets for the chat with a person who has not written yet, whom it names by a hidden address, is that of
// the chat with the number.
func TestSettingsOfAChatThatBeginsLater(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		v := newConversing(t, k)
		v.write(ann, 1)
		v.phoneSets(ben, true)
		v.phoneSets(ann, true)
		v.setting(ann, true, true) // the one before is read, too
		v.write(ben, 1)
		v.setting(ben, true, true)
		v.phoneSets(ben, false)
		v.setting(ben, false, false)
	})
}
