package testkit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// contactList returns the contacts of a client, newest first.
func contactList(c *testkit.Client, query string) []postern.KnownContact {
	var list struct{ Data []postern.KnownContact }
	c.Call("GET", "/v1/contacts"+query, nil, 200, &list)
	return list.Data
}

// members returns the members of the object of an event that are strings.
func members(t *testing.T, d testkit.Delivery, subject string) map[string]any {
	t.Helper()
	var e map[string]json.RawMessage
	var object map[string]any
	err := json.Unmarshal(d.Body, &e)
	if err == nil {
		err = json.Unmarshal(e[subject], &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// A person keeps one id on all devices of a workspace, and after a restart; other workspaces do not see it.
func TestContactsAreKnownByOneID(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c, other := k.Workspace("growth"), k.Workspace("growth")
		hooks := c.Receive("message.received")
		d, second := c.Link(phone), c.Link("+15550001112")
		if err := k.Vendor.PhoneProfiles().SetName(ann, "Ann"); err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{phone, "+15550001112"} {
			if _, err := k.Vendor.Send(t.Context(), to, ann, "Hello"); err != nil {
				t.Fatal(err)
			}
		}
		got := hooks.AwaitCount(postern.MessageReceived, 2)
		id := members(t, got[0], "message")["contactId"]
		if id == nil || members(t, got[1], "message")["contactId"] != id {
			t.Fatalf("one person is %v and %v", id, members(t, got[1], "message")["contactId"])
		}
		k.Stop()
		k.Boot()
		c.Await(d.ID, postern.Connected)
		c.Await(second.ID, postern.Connected)
		list := contactList(c, "")
		if len(list) != 1 || string(list[0].ID) != id || list[0].PhoneNumber != ann || list[0].LID == "" ||
			list[0].Name != "Ann" || list[0].Names.Own != "Ann" || list[0].ChatID != ann || len(list[0].DeviceIDs) != 2 {
			t.Fatalf("contacts are %+v", list)
		}
		send(c, d, ann, "And you?")
		send(c, second, customer, "Hello")
		if one := contactList(c, "?chatId="+url.QueryEscape(customer)); len(one) != 1 || one[0].Name != "" {
			t.Errorf("who was written to is %+v", one)
		}
		if one := contactList(c, "?deviceId="+string(d.ID)); len(one) != 1 || one[0].ID != list[0].ID {
			t.Errorf("the first device knows %+v", one)
		}
		limited := k.Key(c.Workspace, gateway.NewKey{
			Name: "one", Devices: []postern.DeviceID{d.ID}, Scopes: []postern.Scope{postern.ContactsRead},
		})
		if one := contactList(limited, ""); len(one) != 1 || len(one[0].DeviceIDs) != 1 {
			t.Errorf("a key of the first device sees %+v", one)
		}
		theirs := contactList(c, "?deviceId="+string(second.ID))[0].ID
		for caller, status := range map[*testkit.Client]int{limited: 403, other: 403, c: 200} {
			if a := caller.Do("GET", "/v1/contacts/"+string(theirs), nil); a.Status != status {
				t.Errorf("got %d, want %d: %s", a.Status, status, a.Body)
			}
		}
		for _, unknown := range []string{"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA", "%00", "%ff"} {
			for _, path := range []string{"/v1/contacts/" + unknown, "/v1/devices/" + string(d.ID) + "/contacts/" + unknown + "/picture"} {
				if a := c.Do("GET", path, nil); a.Status != http.StatusNotFound {
					t.Errorf("%s: %d %s", path, a.Status, a.Body)
				}
			}
		}
	})
}

// A person whose number the network hides at first has one contact and one chat afterwards, whoever was known first.
func TestAContactIsIdentified(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "message.delivered", "contact.identified")
		d := c.Link(phone)
		says := func(hidden bool, text string, n int) map[string]any {
			t.Helper()
			if err := k.Vendor.Hide(ann, hidden); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Vendor.Send(t.Context(), phone, ann, text); err != nil {
				t.Fatal(err)
			}
			return members(t, hooks.AwaitCount(postern.MessageReceived, n)[n-1], "message")
		}
		first := says(true, "one", 1)
		lid, _ := first["chatId"].(string)
		if !strings.HasPrefix(lid, "lid:") || first["from"] != nil || first["contactId"] == nil {
			t.Fatalf("the hidden message is %v", first)
		}
		c.AwaitMessage(send(c, d, lid, "two").ID, postern.Delivered)
		shown := says(false, "three", 2)
		if shown["chatId"] != ann || shown["contactId"] != first["contactId"] {
			t.Errorf("the other message is %v", shown)
		}
		told := members(t, hooks.AwaitCount(postern.ContactIdentified, 1)[0], "contact")
		if told["id"] != first["contactId"] || told["phoneNumber"] != ann || told["previousChatId"] != lid {
			t.Errorf("contact.identified says %v", told)
		}
		c.AwaitMessage(send(c, d, lid, "four").ID, postern.Delivered)
		want := "four three two one"
		for _, chat := range []string{ann, lid} {
			if got := textsOf(c, "?chatId="+url.QueryEscape(chat)); got != want {
				t.Errorf("the chat %s has %q, want %q", chat, got, want)
			}
		}
	})
}

// What waits for a device when another one learns the number of a hidden person finds the messages that it is about, which
// have moved to the chat with the number.
func TestWhatWaitsFindsMessagesOfAnIdentifiedContact(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "message.edited", "contact.identified")
		const other = "+15550001112"
		d := c.Link(phone)
		c.Link(other)
		says := func(hidden bool, to, text string) {
			t.Helper()
			if err := k.Vendor.Hide(ann, hidden); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Vendor.Send(t.Context(), to, ann, text); err != nil {
				t.Fatal(err)
			}
		}
		says(true, phone, "one")
		lid, _ := members(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], "message")["chatId"].(string)
		mine := c.AwaitMessage(send(c, d, lid, "two").ID, postern.Delivered)
		c.Call("POST", path(d, "/pause"), nil, 200, nil)
		c.Call("PATCH", "/v1/messages/"+string(mine.ID), map[string]any{"body": "two and a half"}, 202, nil)
		says(false, other, "three")
		hooks.Await(postern.ContactIdentified)
		c.Call("POST", path(d, "/resume"), nil, 200, nil)
		edited := members(t, hooks.AwaitCount(postern.MessageEdited, 1)[0], "message")
		if edited["id"] != string(mine.ID) || edited["body"] != "two and a half" || edited["chatId"] != ann {
			t.Errorf("message.edited says %v", edited)
		}
	})
}

// Whatever says which number a hidden person has identifies the contact: a check of the number, the list of a group's
// members, and the history of the phone. People whom nobody has written to do not become contacts by it.
func TestEverySourceIdentifiesAContact(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "contact.identified")
		d := linksWith(c, phone, withHistory())
		for i, source := range []func(number string){
			func(number string) {
				c.Call("POST", path(d, "/contacts/check"), map[string]any{"phoneNumbers": []string{number}}, 200, nil)
			},
			func(number string) {
				_, chat := newGroup(t, k, phone, number, "+15550000077")
				c.Call("GET", path(d, "/groups/"+chat), nil, 200, nil)
			},
			func(number string) {
				if err := k.Vendor.Remember(phone, pastTexts(number, 2)); err != nil {
					t.Fatal(err)
				}
				if err := k.Vendor.SyncHistory(t.Context(), phone); err != nil {
					t.Fatal(err)
				}
			},
		} {
			number := fmt.Sprintf("+1555000002%d", i)
			if err := k.Vendor.Hide(number, true); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Vendor.Send(t.Context(), phone, number, "one"); err != nil {
				t.Fatal(err)
			}
			first := members(t, hooks.AwaitCount(postern.MessageReceived, i+1)[i], "message")
			if first["from"] != nil {
				t.Fatalf("the hidden message is %v", first)
			}
			source(number)
			told := members(t, hooks.AwaitCount(postern.ContactIdentified, i+1)[i], "contact")
			if told["id"] != first["contactId"] || told["phoneNumber"] != number || told["previousChatId"] != first["chatId"] {
				t.Errorf("contact.identified says %v", told)
			}
			if list := contactList(c, ""); len(list) != i+1 {
				t.Errorf("the contacts are %+v", list)
			}
		}
	})
}

// textsOf returns the texts of messages, newest first.
func textsOf(c *testkit.Client, query string) string {
	var list struct{ Data []postern.Message }
	c.Call("GET", "/v1/messages"+query, nil, 200, &list)
	texts := make([]string, len(list.Data))
	for i, m := range list.Data {
		texts[i] = m.Content.Text
	}
	return strings.Join(texts, " ")
}

// Two contacts that turn out to be one person are merged, and both ids find the one.
func TestContactsAreMerged(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "contact.identified")
		d, second := c.Link(phone), c.Link("+15550001112")
		if err := k.Vendor.Hide(ann, true); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Vendor.Send(t.Context(), phone, ann, "one"); err != nil {
			t.Fatal(err)
		}
		hidden := members(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], "message")
		send(c, second, ann, "two")
		if got := len(contactList(c, "")); got != 2 {
			t.Fatalf("there are %d contacts before the number is known", got)
		}
		if err := k.Vendor.Hide(ann, false); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Vendor.Send(t.Context(), phone, ann, "three"); err != nil {
			t.Fatal(err)
		}
		told := members(t, hooks.AwaitCount(postern.ContactIdentified, 2)[0], "contact") // one for each device
		hooks.AwaitCount(postern.MessageReceived, 2)
		var merged, one postern.KnownContact
		c.Call("GET", "/v1/contacts/"+hidden["contactId"].(string), nil, 200, &merged)
		c.Call("GET", "/v1/contacts/"+string(merged.ID), nil, 200, &one)
		if merged.ID == "" || merged.ID != one.ID || told["id"] != string(one.ID) || len(one.DeviceIDs) != 2 {
			t.Errorf("the merged contact is %+v, and %+v; the event says %v", merged, one, told)
		}
		if got := len(contactList(c, "")); got != 1 {
			t.Errorf("there are %d contacts", got)
		}
		if got := textsOf(c, "?deviceId="+string(d.ID)+"&chatId="+url.QueryEscape(ann)); got != "three one" {
			t.Errorf("the chat has %q", got)
		}
		before := "/v1/devices/" + string(d.ID) + "/chats/" + url.PathEscape(hidden["chatId"].(string))
		var chat postern.Chat
		if c.Call("GET", before, nil, 200, &chat); chat.ChatID != ann || chat.UnreadCount != 2 {
			t.Errorf("by its id from before, the chat is %+v", chat)
		}
		if c.Call("POST", before+"/archive", map[string]any{"archived": true}, 200, &chat); !chat.Archived {
			t.Errorf("archived by its id from before, the chat is %+v", chat)
		}
		if c.Call("POST", before+"/read", nil, 202, &chat); chat.ChatID != ann || chat.UnreadCount != 0 {
			t.Errorf("read by its id from before, the chat is %+v", chat)
		}
		if a := c.Do("GET", "/v1/events?limit=200", nil); !strings.Contains(string(a.Body), "previousChatId") {
			t.Fatalf("no event says who was identified: %s", a.Body)
		}
		c.Call("DELETE", "/v1/contacts/"+string(merged.ID), nil, 204, nil)
		testkit.Eventually(t, "no event names the person who was erased", func() (bool, any) {
			a := c.Do("GET", "/v1/events?limit=200", nil)
			return !strings.Contains(string(a.Body), ann), string(a.Body)
		})
	})
}

// Whoever is erased is gone at once: the contact, the messages with their files and events, and what waits to be sent.
// The person may write again, and is somebody new.
func TestAPersonIsErased(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "message.canceled")
		d := c.Link(phone)
		c.Call("PATCH", path(d, ""), map[string]any{"receive": map[string]any{"status": true}}, 200, nil)
		g, chat := newGroup(t, k, ann, phone)
		said := map[string]any{}
		for i, say := range []func() (string, error){
			func() (string, error) {
				c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{
					"from": ann, "type": "document", "body": "secret",
					"media": map[string]any{"data": []byte("secret file"), "mimeType": "text/plain", "filename": "a.txt"},
				}, 200, nil)
				return "", nil
			},
			func() (string, error) {
				return k.Vendor.WriteInGroup(t.Context(), g.ID, ann, vendorsim.Content{
					Type: vendorsim.TypeText, Body: "secret in the group",
				})
			},
			func() (string, error) {
				return k.Vendor.Status().Post(t.Context(), ann, vendorsim.Content{Type: vendorsim.TypeText, Body: "secret post"}, phone)
			},
			func() (string, error) { return k.Vendor.Send(t.Context(), phone, customer, "stays") },
		} {
			if _, err := say(); err != nil {
				t.Fatal(err)
			}
			got := members(t, hooks.AwaitCount(postern.MessageReceived, i+1)[i], "message")
			said[got["body"].(string)] = got
		}
		mine := c.AwaitMessage(send(c, d, ann, "secret answer").ID, postern.Delivered)
		var later postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": ann, "body": "secret later", "sendAt": postern.TimeOf(time.Now().Add(time.Hour)),
		}, 202, &later)
		file := said["secret"].(map[string]any)
		id := file["contactId"].(string)
		for range 2 {
			c.Call("DELETE", "/v1/contacts/"+id, nil, 204, nil)
		}
		hooks.Await(postern.MessageCanceled)
		c.Call("GET", "/v1/contacts/"+id, nil, 404, nil)
		c.Call("GET", "/v1/messages/"+string(mine.ID), nil, 404, nil)
		c.Call("GET", "/v1/messages/"+file["id"].(string), nil, 404, nil)
		if a := c.Do("GET", "/v1/media/"+file["media"].(map[string]any)["id"].(string)+"/content", nil); a.Status == 200 {
			t.Errorf("the file is still there: %d", a.Status)
		}
		if got := textsOf(c, ""); got != "stays" {
			t.Errorf("the messages are %q", got)
		}
		testkit.Eventually(t, "the events have no content", func() (bool, any) {
			a := c.Do("GET", "/v1/events?limit=200", nil)
			return !strings.Contains(string(a.Body), "secret"), string(a.Body)
		})
		if got := len(contactList(c, "")); got != 1 {
			t.Errorf("there are %d contacts", got)
		}
		if _, err := k.Vendor.Send(t.Context(), phone, ann, "again"); err != nil {
			t.Fatal(err)
		}
		again := members(t, hooks.AwaitCount(postern.MessageReceived, 5)[4], "message")
		if again["contactId"] == id || again["contactId"] == nil {
			t.Errorf("the person is %v again", again["contactId"])
		}
		testkit.Eventually(t, "the new message stays", func() (bool, any) {
			got := textsOf(c, "?chatId="+url.QueryEscape(ann))
			return got == "again", got
		})
		for _, written := range []string{chat, postern.StatusChat} {
			if got := textsOf(c, "?chatId="+url.QueryEscape(written)); got != "" {
				t.Errorf("%s has %q", written, got)
			}
		}
	})
}
