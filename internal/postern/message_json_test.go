package postern

import (
	"encoding/json"
	"reflect"
	"testing"
)

// written is a message with all members.
func written() Message {
	return Message{
		ID: "msg_01JD8Z3NDEKTSV4RRFFQ69G5FA", WorkspaceID: "ws_1", DeviceID: "dev_01JD8Z3NDEKTSV4RRFFQ69G5FA",
		Direction: Outbound, ChatID: "+15551234567", From: "+15550001111", FromLID: "123456", FromName: "Ada",
		To: "+15551234567", Content: Text("a < b & \"c\" 👋"), ReplyTo: "msg_1", Status: Failed,
		Error: &Failure{Code: NetworkRejected, Detail: "no"}, NetworkID: "3EB0A1", Source: FromAPI,
		Metadata: map[string]string{"b": "2", "a": "1"}, CreatedAt: 1700000000000, SentAt: 1700000001000,
		DeliveredAt: 1700000002000, ReadAt: 1700000003000, PlayedAt: 1700000004000, ExpiresAt: 1700000005000,
	}
}

// TestBytesOfAMessage compares with the bytes that version 0.1 wrote: readers
// may depend on the order of members.
func TestBytesOfAMessage(t *testing.T) {
	t.Parallel()
	event := func(m Message, kind EventType) func() ([]byte, error) {
		return func() ([]byte, error) {
			e, err := m.Event(kind)
			return e.Object, err
		}
	}
	tests := map[string]struct {
		encode func() ([]byte, error)
		want   string
	}{
		"a response": {
			func() ([]byte, error) { return EncodeJSON(written()) },
			`{"id":"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA","deviceId":"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA","direction":"outbound",` +
				`"type":"text","chatId":"+15551234567","from":"+15550001111","to":"+15551234567","body":"a < b & \"c\" 👋",` +
				`"replyTo":"msg_1","status":"failed","error":{"code":"NETWORK_REJECTED","detail":"no"},"networkId":"3EB0A1",` +
				`"source":"api","metadata":{"a":"1","b":"2"},"createdAt":"2023-11-14T22:13:20.000Z",` +
				`"sentAt":"2023-11-14T22:13:21.000Z","deliveredAt":"2023-11-14T22:13:22.000Z",` +
				`"readAt":"2023-11-14T22:13:23.000Z","playedAt":"2023-11-14T22:13:24.000Z",` +
				`"expiresAt":"2023-11-14T22:13:25.000Z"}`,
		},
		"a response without members": {
			func() ([]byte, error) { return EncodeJSON(Message{Content: Unsupported("")}) },
			`{"id":"","deviceId":"","direction":"","type":"unsupported","chatId":"","from":null,"to":null,"body":"",` +
				`"replyTo":null,"status":"","error":null,"networkId":"","source":"","metadata":null,"createdAt":null,` +
				`"sentAt":null,"deliveredAt":null,"readAt":null,"playedAt":null,"expiresAt":null}`,
		},
		"an arrival": {
			event(written(), MessageEcho),
			`{"id":"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA","from":"+15550001111","body":"a < b & \"c\" 👋",` +
				`"chatId":"+15551234567","type":"text","to":"+15551234567","replyTo":"msg_1","fromName":"Ada",` +
				`"fromLid":"lid:123456","source":"api","error":{"code":"NETWORK_REJECTED","detail":"no"},` +
				`"sentAt":"2023-11-14T22:13:21.000Z"}`,
		},
		"an arrival without members": {
			event(Message{Content: Unsupported("")}, MessageReceived),
			`{"id":"","body":"","chatId":"","type":"unsupported","replyTo":null,"source":"","sentAt":null}`,
		},
	}
	for name, tt := range tests {
		if got, err := tt.encode(); err != nil || string(got) != tt.want {
			t.Errorf("%s = %s, %v, want %s", name, got, err, tt.want)
		}
	}
	got, err := EncodeJSON(written())
	sent, eventErr := event(written(), MessageSent)()
	if err != nil || eventErr != nil || string(got) != string(sent) {
		t.Errorf("the event = %s, %v, want the bytes of the response", sent, eventErr)
	}
}

// TestMessageIsTheSameAfterJSON also fails when a new field of Message has no
// value in written, or no member in MessageObject.
func TestMessageIsTheSameAfterJSON(t *testing.T) {
	t.Parallel()
	want := written()
	want.About, want.SendAt, want.Priority, want.Position = "3EB0A2", 1700000008000, HighPriority, new(3)
	want.Trace, want.History = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01", true
	want.ContactID, want.FromBusiness = "ct_01JD8Z3NDEKTSV4RRFFQ69G5FA", "Acme Bikes"
	want.State = State{EditedAt: 1700000006000, Reactions: []Reaction{{From: "+15551234567", Emoji: "👍", At: 1700000007000}}}
	for i, v := 0, reflect.ValueOf(want); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s has no value", v.Type().Field(i).Name)
		}
	}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Message
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want.WorkspaceID, want.FromLID, want.FromName, want.About, want.Trace = "", "", "", "", "" // not part of the object
	want.FromBusiness, want.ContactID = "", ""                                                 // nor is the contact, in a message of the account
	if !reflect.DeepEqual(got, want) {
		t.Errorf("message = %+v, want %+v", got, want)
	}
}
