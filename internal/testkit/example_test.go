package testkit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestExamplesOfWebhooksAreWhatIsPosted makes every kind of event happen and
// compares what a receiver is posted with the examples of the OpenAPI document.
func TestExamplesOfWebhooksAreWhatIsPosted(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("enterprise")
	hooks := c.Receive("*", string(postern.WebhookDisabled))
	kinds := append(letMessagesHappen(t, k, c, hooks), letDevicesHappen(t, c)...)
	kinds = append(kinds, letWebhooksHappen(c, hooks)...)
	got := map[string]json.RawMessage{}
	for _, d := range hooks.Await(append(kinds, postern.WebhookVerification)...) {
		if _, shown := got[string(d.Type())]; !shown {
			got[string(d.Type())] = json.RawMessage(testkit.Example(string(d.Body)))
		}
	}
	for _, kind := range postern.EventTypes() {
		if got[string(kind)] == nil {
			t.Errorf("%s did not happen", kind)
		}
	}
	const file = "../api/spec/examples/webhooks.json"
	if *update {
		writeWebhooks(t, file, got)
		return
	}
	want := map[string]json.RawMessage{}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	for kind, body := range got {
		var b bytes.Buffer
		if err := json.Compact(&b, want[kind]); err != nil || b.String() != string(body) {
			t.Errorf("what is posted is not the example: run make openapi\n got %s\nwant %s %v", body, b.Bytes(), err)
		}
	}
	if len(want) != len(got) {
		t.Errorf("examples of %v, posted %v", slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	}
}

// letMessagesHappen makes each kind of event about messages.
func letMessagesHappen(t *testing.T, k *testkit.Kit, c *testkit.Client, hooks *testkit.Receiver) []postern.EventType {
	t.Helper()
	d := c.Link(phone)
	box := "/v1/sandbox/devices/" + string(d.ID)
	m := send(c, d, reader, "Your order 17 is on its way.")
	c.AwaitMessage(m.ID, postern.Read)
	m = send(c, d, absent, "Your order 18 is on its way.")
	c.AwaitMessage(m.ID, postern.Failed)
	c.Call("POST", box+"/inbound", map[string]any{"from": customer, "body": "Where is my order?"}, 200, nil)
	do := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := k.Vendor.Type(t.Context(), phone, customer, "I shall have a look.")
	do(err)
	do(k.Vendor.Fault(t.Context(), phone, vendorsim.FaultGarble))
	c.Call("POST", box+"/inbound", map[string]any{"from": customer, "body": "Thank you!"}, 200, nil)
	hooks.Await(postern.MessageUndecryptable)
	letActionsHappen(c, d, hooks)
	c.Call("POST", box+"/calls", map[string]any{"from": customer, "video": true}, 200, nil)
	hooks.Await(postern.CallReceived)
	letContactsHappen(t, k, c, d, hooks)
	letGroupsHappen(t, k, c, d, hooks)
	letFilesHappen(t, k, c, d, hooks)
	for _, f := range []string{"limit", "unlimit", "phone-unseen"} {
		c.Call("POST", box+"/faults", map[string]any{"kind": f}, 204, nil)
		hooks.Await(map[string]postern.EventType{
			"limit": postern.DeviceLimited, "unlimit": postern.DeviceUnlimited, "phone-unseen": postern.DevicePhoneUnseen,
		}[f])
	}
	c.Call("POST", box+"/faults", map[string]any{"kind": "restrict"}, 204, nil)
	c.Await(d.ID, postern.Restricted)
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": customer, "body": "Just a moment.",
		"whenDisconnected": "queue", "expiresIn": 1,
	}, 202, &m)
	c.AwaitMessage(m.ID, postern.Expired)
	return []postern.EventType{
		postern.MessageReceived, postern.MessageEcho, postern.MessageUndecryptable, postern.MessageSent,
		postern.MessageDelivered, postern.MessageRead, postern.MessagePlayed, postern.MessageFailed,
		postern.MediaReadyEv, postern.MediaFailedEv, postern.CallReceived, postern.ContactIdentified,
		postern.DeviceLimited, postern.DeviceUnlimited, postern.DevicePhoneUnseen, postern.GroupJoined, postern.GroupLeft, postern.GroupUpdated, postern.GroupParticipants,
		postern.MessageExpired, postern.MessageCanceled, postern.MessageReaction, postern.MessageEdited,
		postern.MessageDeleted, postern.MessagePinned, postern.MessageUnpinned, postern.MessageStarred,
		postern.MessageUnstarred, postern.PollVote,
	}
}

// letContactsHappen makes each kind of event about contacts.
func letContactsHappen(t *testing.T, k *testkit.Kit, c *testkit.Client, d postern.Device, hooks *testkit.Receiver) {
	t.Helper()
	const shy = "+15550000077"
	for _, hidden := range []bool{true, false} {
		if err := k.Vendor.Hide(shy, hidden); err != nil {
			t.Fatal(err)
		}
		inbox := "/v1/sandbox/devices/" + string(d.ID) + "/inbound"
		c.Call("POST", inbox, map[string]any{"from": shy, "body": "It is me."}, 200, nil)
	}
	hooks.Await(postern.ContactIdentified)
}

// letGroupsHappen makes each kind of event about groups.
func letGroupsHappen(t *testing.T, k *testkit.Kit, c *testkit.Client, d postern.Device, hooks *testkit.Receiver) {
	t.Helper()
	g, chat := newGroup(t, k, customer, phone)
	for _, change := range []vendorsim.GroupChange{{Subject: new("Orders")}, {Add: []string{reader}}} {
		if err := k.Vendor.ChangeGroup(g.ID, customer, change); err != nil {
			t.Fatal(err)
		}
	}
	hooks.Await(postern.GroupJoined, postern.GroupUpdated, postern.GroupParticipants)
	c.Call("POST", path(d, "/groups/"+chat+"/leave"), nil, 204, nil)
	hooks.Await(postern.GroupLeft)
}

// letFilesHappen makes each kind of event about files, and plays a voice message.
func letFilesHappen(t *testing.T, k *testkit.Kit, c *testkit.Client, d postern.Device, hooks *testkit.Receiver) {
	receive := func(event postern.EventType) {
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{
			"from": customer, "type": "document", "body": "My order",
			"media": map[string]any{"data": []byte("Order 17"), "mimeType": "text/plain", "filename": "order.txt"},
		}, 200, nil)
		hooks.Await(event)
	}
	receive(postern.MediaReadyEv)
	for _, f := range []vendorsim.Fault{vendorsim.FaultMedia, vendorsim.FaultMediaGone} {
		if err := k.Vendor.Fault(t.Context(), phone, f); err != nil {
			t.Fatal(err)
		}
	}
	receive(postern.MediaFailedEv)
	var m postern.Message
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": reader, "type": "voice",
		"media": map[string]any{"data": sample(t, "voice.ogg"), "mimeType": "audio/ogg"},
	}, 202, &m)
	c.AwaitMessage(m.ID, postern.Read)
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/receipts", map[string]any{
		"messageId": m.ID, "status": "played",
	}, 204, nil)
	hooks.Await(postern.MessagePlayed)
}

// letActionsHappen makes each kind of event about an action on a message.
func letActionsHappen(c *testkit.Client, d postern.Device, hooks *testkit.Receiver) {
	act := func(method string, id postern.MessageID, path string, body any, event postern.EventType) {
		c.Call(method, "/v1/messages/"+string(id)+path, body, 202, nil)
		hooks.Await(event)
	}
	var later postern.Message
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": reader, "body": "See you tomorrow!", "sendAt": time.Now().Add(24 * time.Hour).UTC(),
	}, 202, &later)
	c.Call("POST", "/v1/messages/"+string(later.ID)+"/cancel", nil, 200, nil)
	hooks.Await(postern.MessageCanceled)
	m := send(c, d, reader, "Your order 19 is on its wey.")
	c.AwaitMessage(m.ID, postern.Read) // what is shown of a message must not depend on the time
	act("PUT", m.ID, "/reaction", map[string]any{"emoji": "👍"}, postern.MessageReaction)
	act("PATCH", m.ID, "", map[string]any{"body": "Your order 19 is on its way."}, postern.MessageEdited)
	act("PUT", m.ID, "/pin", nil, postern.MessagePinned)
	act("DELETE", m.ID, "/pin", nil, postern.MessageUnpinned)
	act("PUT", m.ID, "/star", nil, postern.MessageStarred)
	act("DELETE", m.ID, "/star", nil, postern.MessageUnstarred)
	act("DELETE", m.ID, "", nil, postern.MessageDeleted)
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": reader, "type": "poll",
		"poll": map[string]any{"question": "Where shall we meet?", "options": []string{"At the office", "Online"}},
	}, 202, &m)
	c.AwaitMessage(m.ID, postern.Read)
	act("POST", m.ID, "/votes", map[string]any{"options": []string{"Online"}}, postern.PollVote)
}

// letDevicesHappen makes each kind of event about devices.
func letDevicesHappen(t *testing.T, c *testkit.Client) []postern.EventType {
	t.Helper()
	askPasskey(t, c, create(c))
	for i, kind := range []string{"logout", "ban", "conflict", "drop"} {
		d := c.Link("+1555000222" + string(rune('0'+i)))
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/faults", map[string]any{"kind": kind}, 204, nil)
	}
	d := c.Link("+15550003333")
	c.Call("POST", "/v1/devices/"+string(d.ID)+"/unlink", nil, 200, nil)
	d = c.Link("+15550004444")
	c.Call("POST", "/v1/devices/"+string(d.ID)+"/pause", nil, 200, nil)
	return []postern.EventType{
		postern.DeviceLinking, postern.DevicePaused, postern.DeviceLinked, postern.DeviceConnected, postern.DeviceDisconnected,
		postern.DeviceRestricted, postern.DeviceLoggedOutEv, postern.DeviceBanned, postern.DeviceConflict,
		postern.DeviceUnlinked,
	}
}

// letWebhooksHappen makes each kind of event about webhooks.
func letWebhooksHappen(c *testkit.Client, hooks *testkit.Receiver) []postern.EventType {
	test := func(r *testkit.Receiver) {
		c.Call("POST", "/v1/webhooks/"+string(r.Endpoint.ID)+"/test", nil, 202, nil)
	}
	test(hooks)
	gone := c.Receive("call.received") // nothing comes by itself
	gone.Down(410)
	test(gone)
	return []postern.EventType{postern.WebhookTest, postern.WebhookDisabled}
}

func writeWebhooks(t *testing.T, file string, list map[string]json.RawMessage) {
	t.Helper()
	raw, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(raw, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}
