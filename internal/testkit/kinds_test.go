package testkit_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// kinds are messages of each kind that can be sent, as the members of a request.
func kinds() map[string]map[string]any {
	ada := map[string]any{"name": "Ada; Lovelace", "phoneNumbers": []any{"+15557654321"}, "organization": "A, B"}
	bob := map[string]any{"name": "Bob", "phoneNumbers": []any{"+15557654322", "+15557654323"}}
	return map[string]map[string]any{
		"text":              {"body": "hello"},
		"text with mention": {"body": "@15557654321, hello", "mentions": []any{"+15557654321"}},
		"forwarded text":    {"body": "hello", "forwarded": true},
		"location":          {"type": "location", "location": map[string]any{"latitude": 52.5163, "longitude": 13.3777}},
		"contact":           {"type": "contact", "contacts": []any{ada}},
		"contacts":          {"type": "contact", "contacts": []any{ada, bob}, "forwarded": true},
		"poll": {"type": "poll", "poll": map[string]any{
			"question": "Where?", "options": []any{"Here", "There"}, "maxSelections": 1.0,
		}},
	}
}

// TestKindsGoBothWays sends each kind through the API to a phone that decrypts it, and lets a
// phone write each kind, which arrives by webhook.
func TestKindsGoBothWays(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("enterprise")
		hooks := c.Receive("message.received")
		d := c.Link(phone)
		n := 0
		for name, members := range kinds() {
			t.Run(name, func(t *testing.T) {
				sendKind(t, k, c, d, members)
				n++
				receiveKind(t, c, d, hooks, n, members)
			})
		}
	})
}

// sendKind sends members, and compares them with the response, with the stored message and with
// what the recipient's phone decrypts.
func sendKind(t *testing.T, k *testkit.Kit, c *testkit.Client, d postern.Device, members map[string]any) {
	t.Helper()
	body := maps.Clone(members)
	body["deviceId"], body["to"] = d.ID, reader
	var accepted, stored map[string]any
	c.Call("POST", "/v1/messages", body, 202, &accepted)
	mustHave(t, "the response", accepted, members)
	id, _ := accepted["id"].(string)
	m := c.AwaitMessage(postern.MessageID(id), postern.Read)
	c.Call("GET", "/v1/messages/"+id, nil, 200, &stored)
	mustHave(t, "the message", stored, members)
	for _, shown := range k.Vendor.Shown(reader) {
		if shown.ID == m.NetworkID {
			mustHave(t, "the recipient's phone", asMap(t, shown), members)
			return
		}
	}
	t.Error("the recipient's phone shows no such message")
}

// receiveKind lets a contact write members, and compares them with the n-th event, with the
// stored message and with what the own phone shows.
func receiveKind(
	t *testing.T, c *testkit.Client, d postern.Device, hooks *testkit.Receiver, n int, members map[string]any,
) {
	t.Helper()
	body := maps.Clone(members)
	body["from"] = customer
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", body, 200, nil)
	event := received(hooks, n)
	mustHave(t, "message.received", event, members)
	var stored map[string]any
	id, _ := event["id"].(string)
	c.Call("GET", "/v1/messages/"+id, nil, 200, &stored)
	mustHave(t, "the received message", stored, members)
	var own struct{ Data []map[string]any }
	c.Call("GET", "/v1/sandbox/devices/"+string(d.ID)+"/phone", nil, 200, &own)
	mustHave(t, "the own phone", own.Data[len(own.Data)-1], members)
}

// received returns the message of the n-th message.received; the ones before have arrived.
func received(hooks *testkit.Receiver, n int) map[string]any {
	message, _ := hooks.AwaitCount(postern.MessageReceived, n)[n-1].Event["message"].(map[string]any)
	return message
}

func asMap(t *testing.T, v any) (m map[string]any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustHave compares the members of an object with those that were sent.
func mustHave(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	for name, value := range want {
		if !reflect.DeepEqual(got[name], value) {
			t.Errorf("%s has %s = %v, want %v", what, name, got[name], value)
		}
	}
	if _, other := want["body"]; !other && got["body"] != "" {
		t.Errorf("%s has the body %q, want none", what, got["body"])
	}
}

// A reply names its message at both ends.
func TestRepliesGoBothWays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received")
		d := c.Link(phone)
		n := 0
		inbound := func(body map[string]any) map[string]any {
			body["from"] = reader
			c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", body, 200, nil)
			n++
			return received(hooks, n)
		}
		asked := inbound(map[string]any{"body": "are you there?"})
		var answer postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": reader, "body": "yes", "replyTo": asked["id"],
		}, 202, &answer)
		c.AwaitMessage(answer.ID, postern.Read)
		shown := k.Vendor.Shown(reader)
		if first, last := shown[0], shown[len(shown)-1]; last.ReplyTo != first.ID || last.Body != "yes" {
			t.Errorf("the reply on the phone is to %q, want %q", last.ReplyTo, first.ID)
		}
		for _, to := range []any{string(answer.ID), asked["id"]} {
			if got := inbound(map[string]any{"body": "good", "replyTo": to}); got["replyTo"] != to {
				t.Errorf("message.received is a reply to %v, want %v", got["replyTo"], to)
			}
		}
	})
}

// A reply to a message of another chat, or to none, is refused.
func TestReplyIsChecked(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c, stranger := k.Workspace("growth"), k.Workspace("growth")
	d := c.Link(phone)
	other, foreign := send(c, d, customer, "x"), send(stranger, stranger.Link("+15550002222"), reader, "x")
	for want, to := range map[int]string{422: string(other.ID), 403: string(foreign.ID), 404: "msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"} {
		c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": reader, "body": "x", "replyTo": to}, want, nil)
	}
}

// A chat keeps the timer of its disappearing messages: each message carries it, also after a
// restart, until somebody turns it off.
func TestTimerOfAChatIsKept(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		const day = 24 * 60 * 60
		c := k.Workspace("enterprise")
		d := c.Link(phone)
		set := func(seconds int) {
			timer := vendorsim.Content{Type: vendorsim.TypeTimer, Seconds: seconds}
			_, err := k.Vendor.SendContent(t.Context(), phone, reader, timer)
			if err != nil {
				t.Fatal(err)
			}
		}
		carried := func() int {
			m := c.AwaitMessage(send(c, d, reader, "hello").ID, postern.Read)
			shown, err := k.Vendor.ShownMessage(reader, m.NetworkID)
			if err != nil {
				t.Fatal(err)
			}
			return shown.Expires
		}
		carries := func(seconds int) {
			testkit.Eventually(t, "messages carry the timer", func() (bool, any) {
				got := carried()
				return got == seconds, got
			})
		}
		set(day)
		carries(day)
		if m := c.AwaitMessage(send(c, d, customer, "hello").ID, postern.Delivered); m.ID != "" {
			if shown, err := k.Vendor.ShownMessage(customer, m.NetworkID); err != nil || shown.Expires != 0 {
				t.Errorf("a message of another chat expires after %d s, %v", shown.Expires, err)
			}
		}
		k.Stop()
		k.Boot()
		c.Await(d.ID, postern.Connected)
		if got := carried(); got != day {
			t.Errorf("after a restart, messages expire after %d s", got)
		}
		set(0)
		carries(0)
	})
}
