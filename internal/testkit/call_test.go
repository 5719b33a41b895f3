package testkit_test

import (
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// Calls are reported, are part of the conversation, and neither repeat nor disturb messages.
func TestCallsAreReported(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("call.received", "message.received")
		d := c.Link(phone)
		called := func(n int) map[string]any {
			call, _ := hooks.AwaitCount(postern.CallReceived, n)[n-1].Event["call"].(map[string]any)
			return call
		}
		var ringing struct{ CallID string }
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/calls",
			map[string]any{"from": customer, "video": true}, 200, &ringing)
		first := called(1)
		mustHave(t, "call.received", withoutBody(first), map[string]any{
			"id": ringing.CallID, "from": customer, "chatId": customer, "video": true, "group": false, "body": "",
		})
		if err := k.Vendor.HangUp(t.Context(), phone, customer, ringing.CallID); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Vendor.Call(t.Context(), phone, reader, vendorsim.Call{Group: true}); err != nil {
			t.Fatal(err)
		}
		mustHave(t, "call.received", withoutBody(called(2)), map[string]any{
			"from": reader, "video": false, "group": true, "body": "",
		})

		var m postern.Message
		id, _ := first["messageId"].(string)
		c.Call("GET", "/v1/messages/"+id, nil, 200, &m)
		if m.Content.Kind != postern.KindCall || m.Content.Call == nil || !m.Content.Call.Video ||
			m.NetworkID != ringing.CallID || m.Direction != postern.Inbound || m.ChatID != customer {
			t.Errorf("the call is shown as %+v", m)
		}
		c.Call("PUT", "/v1/messages/"+id+"/reaction", map[string]any{"emoji": "👍"}, 409, nil)
		c.Call("POST", "/v1/messages/"+id+"/read", nil, 409, nil)
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": customer, "body": "I call back", "replyTo": id,
		}, 422, nil)
		var list struct{ Data []postern.Message }
		if c.Call("GET", "/v1/messages?type=call", nil, 200, &list); len(list.Data) != 2 {
			t.Errorf("%d calls are listed, want 2", len(list.Data))
		}

		c.Call("PATCH", "/v1/devices/"+string(d.ID), map[string]any{"receive": map[string]any{"calls": false}}, 200, nil)
		if _, err := k.Vendor.Call(t.Context(), phone, customer, vendorsim.Call{}); err != nil {
			t.Fatal(err)
		}
		sent := send(c, d, reader, "after the calls")
		c.AwaitMessage(sent.ID, postern.Read)
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{"from": customer, "body": "Hello?"}, 200, nil)
		hooks.Await(postern.MessageReceived)
		list.Data = nil
		if c.Call("GET", "/v1/messages?type=call", nil, 200, &list); len(list.Data) != 2 {
			t.Errorf("%d calls are listed after they were turned off, want 2", len(list.Data))
		}
	})
}

// withoutBody is an object that has no text, for mustHave.
func withoutBody(object map[string]any) map[string]any {
	object["body"] = ""
	return object
}
