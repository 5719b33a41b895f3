package testkit_test

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"fmt"
	"image/png"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// linksWith links a new device whose settings of what it receives are changed before.
func linksWith(c *testkit.Client, number string, receive map[string]any) (d postern.Device) {
	c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, &d)
	c.Call("PATCH", path(d, ""), map[string]any{"receive": receive}, 200, nil)
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	c.Scan(d.ID, map[string]any{"phoneNumber": number})
	return c.Await(d.ID, postern.Connected)
}

func withHistory() map[string]any { return map[string]any{"history": true} }

// pastTexts returns messages between the phone and a contact, one for each second before now.
func pastTexts(from string, count int) []vendorsim.Past {
	list := make([]vendorsim.Past, count)
	begin := time.Now().Add(-time.Duration(count+100) * time.Second)
	for i := range list {
		list[i] = vendorsim.Past{
			From: from, Content: vendorsim.Content{Type: vendorsim.TypeText, Body: fmt.Sprintf("text %05d", i)},
			At: begin.Add(time.Duration(i) * time.Second),
		}
		if i%2 == 1 {
			list[i].From, list[i].To = phone, from
		}
	}
	return list
}

// messagesOf returns all messages of a device, oldest first.
func messagesOf(c *testkit.Client, d postern.Device) (all []postern.Message) {
	for cursor := ""; ; {
		var page struct {
			Data       []postern.Message
			NextCursor *string
		}
		c.Call("GET", "/v1/messages?limit=200&deviceId="+string(d.ID)+cursor, nil, 200, &page)
		all = append(all, page.Data...)
		if page.NextCursor == nil {
			slices.Reverse(all)
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

// awaitMessages waits until a device has a number of messages, and returns them, oldest first.
func awaitMessages(t *testing.T, c *testkit.Client, d postern.Device, count int) (all []postern.Message) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d messages", count), func() (bool, any) {
		all = messagesOf(c, d)
		return len(all) >= count, len(all)
	})
	if len(all) != count {
		t.Fatalf("%d messages, want %d", len(all), count)
	}
	return all
}

// The history of a phone is stored in its order, without events and without quota, also if the server is stopped
// meanwhile and the phone sends it again.
func TestHistoryIsStored(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		const count = 10_000
		c := k.Workspace("enterprise")
		hooks := c.Receive("message.*")
		if err := k.Vendor.Remember(phone, pastTexts(ann, count)); err != nil {
			t.Fatal(err)
		}
		d := linksWith(c, phone, withHistory())
		testkit.Eventually(t, "some messages", func() (bool, any) {
			var page struct{ Data []postern.Message }
			c.Call("GET", "/v1/messages?limit=1", nil, 200, &page)
			return len(page.Data) > 0, nil
		})
		k.Stop()
		k.Boot()
		c.Await(d.ID, postern.Connected)
		// Parts have 5000 messages. The phone sends the newer ones first.
		all := awaitMessages(t, c, d, count)
		slices.SortStableFunc(all, func(a, b postern.Message) int { return int(a.SentAt - b.SentAt) })
		for i, m := range all {
			want := fmt.Sprintf("text %05d", i)
			if m.Content.Text != want || !m.History || m.ChatID != ann || m.CreatedAt != m.SentAt ||
				m.Direction == postern.Inbound && m.ContactID != all[0].ContactID ||
				(m.Direction == postern.Outbound) != (i%2 == 1) {
				t.Fatalf("message %d is %+v", i, m)
			}
		}
		if list := contactList(c, ""); len(list) != 1 || list[0].ID != all[0].ContactID || list[0].PhoneNumber != ann {
			t.Errorf("the contacts are %+v", list)
		}
		if all[0].Status != postern.Received || all[0].From != ann || all[1].Status != postern.Read || all[1].To != ann {
			t.Errorf("the first messages are %+v and %+v", all[0], all[1])
		}
		if err := k.Vendor.SyncHistory(t.Context(), phone); err != nil {
			t.Fatal(err)
		}
		// A message that arrives after the history proves that nothing is left to read, and is the only one with an event.
		if _, err := k.Vendor.Send(t.Context(), phone, ann, "now"); err != nil {
			t.Fatal(err)
		}
		got := hooks.AwaitCount(postern.MessageReceived, 1)
		if !strings.Contains(string(got[0].Body), `"body":"now"`) {
			t.Errorf("the first event is %s", got[0].Body)
		}
		awaitNothingToRead(t, k)
		if n := len(messagesOf(c, d)); n != count+1 {
			t.Errorf("%d messages after the phone sent its history again", n)
		}
		var usage struct{ Messages struct{ Used int } }
		c.Call("GET", "/v1/usage", nil, 200, &usage)
		if usage.Messages.Used != 0 {
			t.Errorf("%d messages are counted", usage.Messages.Used)
		}
	})
}

// awaitNothingToRead waits until all parts of histories are read.
func awaitNothingToRead(t *testing.T, k *testkit.Kit) {
	t.Helper()
	testkit.Eventually(t, "the history to be read", func() (bool, any) {
		n, err := k.Gateway().Sessions.History().Count(t.Context())
		return err == nil && n == 0, n
	})
}

// Without the setting, no message of the history is stored, but what the account needs to write to people is kept: the
// timers of chats, and the tokens without which the vendor refuses a message to a stranger.
func TestTokensOfTheHistoryAreKept(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		const other = "+15550002222"
		set := vendorsim.Past{
			From: ann, Content: vendorsim.Content{Type: vendorsim.TypeTimer, Seconds: 604800}, At: time.Now().Add(-time.Hour),
		}
		if err := k.Vendor.Remember(phone, append(pastTexts(ann, 200), set)); err != nil {
			t.Fatal(err)
		}
		if err := k.Vendor.WithholdHistory(other); err != nil {
			t.Fatal(err)
		}
		with, without := c.Link(phone), c.Link(other)
		awaitNothingToRead(t, k)
		for _, d := range []postern.Device{with, without} {
			if err := k.Vendor.RequireTokens(string(d.PhoneNumber)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(messagesOf(c, with)); n != 0 {
			t.Errorf("%d messages are stored", n)
		}
		for to, expires := range map[string]int{ann: 604800, ben: 0} { // a token that Ann has granted, and one of the salt
			m := c.AwaitMessage(send(c, with, to, "hello").ID, postern.Delivered)
			if shown, err := k.Vendor.ShownMessage(to, m.NetworkID); err != nil || shown.Expires != expires {
				t.Errorf("the message to %s expires after %d s, %v, want %d", to, shown.Expires, err, expires)
			}
		}
		m := c.AwaitMessage(send(c, without, ann, "hello").ID, postern.Failed)
		if m.Error == nil || m.Error.Code != postern.RestrictedSender {
			t.Errorf("the refused message is %+v", m.Error)
		}
	})
}

// A chat's older messages are asked for, page by page. Files are fetched when somebody asks for them.
func TestHistoryIsAskedFor(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		past := pastTexts(ann, 100)
		past[3].Content = vendorsim.Content{Type: vendorsim.TypeImage, Body: "look", Media: &vendorsim.Media{Data: picture(t, png.Encode)}}
		if err := k.Vendor.Remember(phone, past); err != nil {
			t.Fatal(err)
		}
		if err := k.Vendor.SetHistoryDepth(phone, 10); err != nil {
			t.Fatal(err)
		}
		d := linksWith(c, phone, withHistory())
		awaitMessages(t, c, d, 10)
		at := path(d, "/chats/"+url.PathEscape(ann)+"/history")
		var asked struct {
			ChatID string
			Before postern.MessageID
			Count  int
		}
		c.Call("POST", at, map[string]any{"count": 40}, 202, &asked)
		if asked.ChatID != ann || asked.Count != 40 || asked.Before == "" {
			t.Errorf("asked for %+v", asked)
		}
		awaitMessages(t, c, d, 50)
		c.Call("POST", at, nil, 202, nil)
		all := awaitMessages(t, c, d, 100)
		c.Call("POST", path(d, "/chats/"+url.PathEscape(ben)+"/history"), nil, 404, nil)

		i := slices.IndexFunc(all, func(m postern.Message) bool { return m.Content.Media != nil })
		file := all[i].Content.Media
		if file.Status != postern.MediaPending {
			t.Errorf("the file is %+v", file)
		}
		c.Call("GET", "/v1/media/"+string(file.ID)+"/content", nil, 404, nil)
		testkit.Eventually(t, "the file", func() (bool, any) {
			c.Call("GET", "/v1/media/"+string(file.ID), nil, 200, file)
			return file.Status == postern.MediaReady, file
		})
		if got := c.Download(file.ID); !bytes.Equal(got, picture(t, png.Encode)) {
			t.Errorf("the file has %d bytes", len(got))
		}
	})
}

func packed(t *testing.T, raw ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	for _, b := range raw {
		if _, err := z.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// offerHistory lets the phone offer a part of its history, after change.
func offerHistory(t *testing.T, k *testkit.Kit, part []byte, change func(*waE2E.HistorySyncNotification)) {
	t.Helper()
	n, err := k.Vendor.UploadHistory(phone, part)
	if err != nil {
		t.Fatal(err)
	}
	n.SyncType = waE2E.HistorySyncType_RECENT.Enum()
	change(n)
	if err := k.Vendor.AnnounceHistory(t.Context(), phone, n); err != nil {
		t.Fatal(err)
	}
}

// proven waits until a message that is sent now has arrived, and all offers before it are read.
func proven(t *testing.T, k *testkit.Kit, hooks *testkit.Receiver, count int) {
	t.Helper()
	if _, err := k.Vendor.Send(t.Context(), phone, ben, "after"); err != nil {
		t.Fatal(err)
	}
	hooks.AwaitCount(postern.MessageReceived, count)
	awaitNothingToRead(t, k)
}

// aPart is a part of a history with one message of Ann, sent at a time.
func aPart(t *testing.T, body string, at uint64) []byte {
	t.Helper()
	kind := waHistorySync.HistorySync_RECENT
	raw, err := proto.Marshal(&waHistorySync.HistorySync{SyncType: &kind, Conversations: []*waHistorySync.Conversation{{
		ID: proto.String(strings.TrimPrefix(ann, "+") + "@s.whatsapp.net"), Messages: []*waHistorySync.HistorySyncMsg{
			{Message: webText(body, at)},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func webText(body string, at uint64) *waWeb.WebMessageInfo {
	return &waWeb.WebMessageInfo{
		Key:              &waCommon.MessageKey{ID: proto.String("3EB0" + strings.ToUpper(body)), FromMe: proto.Bool(false)},
		Message:          &waE2E.Message{Conversation: &body},
		MessageTimestamp: &at,
	}
}

// A history that is not the phone's, or is damaged, is ignored; what comes after it is read.
func TestFalseHistoryIsIgnored(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received")
		d := linksWith(c, phone, withHistory())
		now := uint64(time.Now().Unix())
		unchanged := func(*waE2E.HistorySyncNotification) {}
		file := func(n *waE2E.HistorySyncNotification) *waE2E.HistorySyncNotification {
			if n.DirectPath == nil {
				t.Fatal("the part is not in a file")
			}
			return n
		}
		big := packed(t, aPart(t, "damaged", now), noise(20_000))
		arrived := 0
		for name, offer := range map[string]func(){
			"of a stranger": func() { // who claims to be the owner's phone
				n, err := k.Vendor.UploadHistory(phone, packed(t, aPart(t, "stranger", now)))
				if err != nil {
					t.Fatal(err)
				}
				n.SyncType = waE2E.HistorySyncType_RECENT.Enum()
				raw, err := proto.Marshal(&waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
					Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(), HistorySyncNotification: n,
				}})
				if err == nil {
					_, err = k.Vendor.SendContent(t.Context(), phone, ann, vendorsim.Content{Type: "protocol", Raw: raw})
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			"with a wrong hash": func() {
				offerHistory(t, k, big, func(n *waE2E.HistorySyncNotification) { file(n).FileSHA256 = make([]byte, 32) })
			},
			"with a wrong MAC": func() {
				offerHistory(t, k, big, func(n *waE2E.HistorySyncNotification) { file(n).MediaKey = make([]byte, 32) })
			},
			"with another size": func() {
				offerHistory(t, k, big, func(n *waE2E.HistorySyncNotification) { *file(n).FileLength = 100 })
			},
			"that is too large": func() {
				offerHistory(t, k, big, func(n *waE2E.HistorySyncNotification) { *file(n).FileLength = 1 << 40 })
			},
			"that is not compressed": func() { offerHistory(t, k, aPart(t, "plain", now), unchanged) },
			"that is cut":            func() { offerHistory(t, k, packed(t, aPart(t, "cut", now))[:30], unchanged) },
			"that is no protobuf":    func() { offerHistory(t, k, packed(t, []byte("hello, world")), unchanged) },
			"that the vendor lost": func() {
				offerHistory(t, k, big, func(n *waE2E.HistorySyncNotification) { n.DirectPath = proto.String("/v/none?x=1") })
			},
			"of a path that is none": func() {
				offerHistory(t, k, big, func(n *waE2E.HistorySyncNotification) { n.DirectPath = proto.String("@evil.test/") })
			},
			"that inflates to gigabytes": func() { offerHistory(t, k, bomb(t), unchanged) },
		} {
			offer()
			arrived++
			proven(t, k, hooks, arrived)
			if n := len(messagesOf(c, d)); n != arrived {
				t.Errorf("a history %s: %d messages, want %d", name, n, arrived)
			}
		}
		offerHistory(t, k, packed(t, aPart(t, "good", now-60)), unchanged)
		awaitMessages(t, c, d, arrived+1)
	})
}

// noise is a field that nobody knows, and that cannot be compressed.
func noise(size int) []byte {
	b := make([]byte, size)
	rand.Read(b)
	return append(protowire.AppendVarint(protowire.AppendTag(nil, 500, protowire.BytesType), uint64(size)), b...)
}

// bomb is a part of 3 GB, most of which is a field that nobody knows. All blocks of zeros but the first are the same bytes.
func bomb(t *testing.T) []byte {
	t.Helper()
	const blocks = 3 << 10
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	zeros := make([]byte, 1<<20)
	if _, err := z.Write(protowire.AppendVarint(protowire.AppendTag(nil, 500, protowire.BytesType), blocks<<20)); err != nil {
		t.Fatal(err)
	}
	begin := 0
	for range 3 {
		begin = out.Len()
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return append(out.Bytes(), bytes.Repeat(out.Bytes()[begin:], blocks)...)
}

// A time that cannot be is replaced by the present one.
func TestHistoryFromTheFuture(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := linksWith(c, phone, withHistory())
		for i, at := range []uint64{0, 1 << 40, 1 << 62, 1<<64 - 1} {
			body := fmt.Sprintf("f%d", i)
			offerHistory(t, k, packed(t, aPart(t, body, at)), func(*waE2E.HistorySyncNotification) {})
			for _, m := range awaitMessages(t, c, d, i+1) {
				if age := time.Since(m.SentAt.Std()); age < 0 || age > testkit.Wait {
					t.Errorf("a message of %d was sent %s ago", at, age)
				}
			}
		}
	})
}

// What is known already is not stored again, whether it arrived before the history or comes after it.
func TestHistoryIsNotDoubled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.*")
		d := linksWith(c, phone, withHistory())
		id, err := k.Vendor.Send(t.Context(), phone, ann, "live")
		if err != nil {
			t.Fatal(err)
		}
		hooks.AwaitCount(postern.MessageReceived, 1)
		sent := c.AwaitMessage(send(c, d, ann, "mine").ID, postern.Delivered)
		past := pastTexts(ann, 2)
		past[0].ID, past[1].ID = id, sent.NetworkID
		if err := k.Vendor.Remember(phone, past); err != nil {
			t.Fatal(err)
		}
		if err := k.Vendor.Remember(phone, pastTexts(ben, 2)); err != nil {
			t.Fatal(err)
		}
		if err := k.Vendor.SyncHistory(t.Context(), phone); err != nil {
			t.Fatal(err)
		}
		all := awaitMessages(t, c, d, 4)
		for _, m := range all[:2] {
			if m.History || m.Content.Text != "live" && m.Content.Text != "mine" {
				t.Errorf("a message became %+v", m)
			}
		}
		var list struct {
			Data []struct{ Type string }
		}
		c.Call("GET", "/v1/events?type=message.received&deviceId="+string(d.ID), nil, 200, &list)
		if len(list.Data) != 1 {
			t.Errorf("%d messages were reported as received", len(list.Data))
		}
	})
}
