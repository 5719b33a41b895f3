package spec

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// Envelope is what every event has.
type Envelope struct {
	EventID     postern.EventID     `json:"eventId" doc:"Unique and stable; use it to detect duplicates." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Timestamp   postern.Time        `json:"timestamp" format:"date-time" doc:"When the event was recorded; never decreases with sequence." example:"2026-11-21T09:00:00.000Z"`
	DeviceID    postern.DeviceID    `json:"deviceId" doc:"The device that the event is about." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	WorkspaceID postern.WorkspaceID `json:"workspaceId" doc:"The workspace of the device." example:"ws_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Sequence    int64               `json:"sequence" doc:"Position among the events of its device, without gaps." example:"17"`
}

// ArrivalEvent reports a message that arrived, or that the account sent from
// another client.
type ArrivalEvent struct {
	Envelope

	Type    postern.EventType `json:"type" enum:"message.received,message.echo,message.undecryptable" doc:"Kind of the event." example:"message.received"`
	Message *postern.Arrival  `json:"message,omitempty" doc:"The message; absent once the device was deleted."`
}

// MessageEvent reports the progress of a message that the device sent.
type MessageEvent struct {
	Envelope

	Type    postern.EventType `json:"type" enum:"message.sent,message.delivered,message.read,message.played,media.ready,media.failed,message.failed,message.expired,message.canceled" doc:"Kind of the event." example:"message.sent"`
	Message *postern.Message  `json:"message,omitempty" doc:"The message at the time of the event; absent once the device was deleted."`
}

// ActionEvent reports that somebody reacted to a message, edited, deleted, pinned or starred it, or
// voted in a poll.
type ActionEvent struct {
	Envelope

	Type    postern.EventType     `json:"type" enum:"message.reaction,message.edited,message.deleted,message.pinned,message.unpinned,message.starred,message.unstarred,poll.vote" doc:"Kind of the event." example:"message.reaction"`
	Message *postern.ActionObject `json:"message,omitempty" doc:"The message as the action has left it; absent once the device was deleted."`
}

// CallEvent reports a call.
type CallEvent struct {
	Envelope

	Type postern.EventType     `json:"type" enum:"call.received" doc:"Kind of the event." example:"call.received"`
	Call *postern.ReceivedCall `json:"call,omitempty" doc:"The call; absent once the device was deleted."`
}

// ContactEvent reports that a contact became known better.
type ContactEvent struct {
	Envelope

	Type    postern.EventType          `json:"type" enum:"contact.identified" doc:"Kind of the event." example:"contact.identified"`
	Contact *postern.IdentifiedContact `json:"contact,omitempty" doc:"The contact, as the device knows it; absent once the device or the contact was deleted."`
}

// GroupEvent reports a change of a group that the account is in.
type GroupEvent struct {
	Envelope

	Type  postern.EventType     `json:"type" enum:"group.joined,group.left,group.updated,group.participants" doc:"Kind of the event." example:"group.participants"`
	Group *postern.ChangedGroup `json:"group,omitempty" doc:"The group after the change; absent once the device was deleted."`
}

// DeviceEvent reports a change of a device's session.
type DeviceEvent struct {
	Envelope

	Type   postern.EventType `json:"type" enum:"device.linked,device.connected,device.disconnected,device.restricted,device.logged_out,device.banned,device.conflict,device.unlinked,device.paused,device.linking,device.limited,device.unlimited,device.phone_unseen" doc:"Kind of the event." example:"device.connected"`
	Device *postern.Device   `json:"device,omitempty" doc:"The device at the time of the event; absent once it was deleted."`
}

// Verification is the challenge of an endpoint's handshake. It does not belong to
// a device, and is not in the event log.
type Verification struct {
	EventID   postern.EventID   `json:"eventId" doc:"Identifies this challenge." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Type      postern.EventType `json:"type" enum:"webhook.verification" doc:"Always webhook.verification." example:"webhook.verification"`
	Timestamp postern.Time      `json:"timestamp" format:"date-time" doc:"When the challenge was made." example:"2026-11-21T09:00:00.000Z"`
	DeviceID  string            `json:"deviceId" maxLength:"0" doc:"Empty: it concerns no device." example:""`
	Challenge string            `json:"challenge" doc:"Send this value back in the response." example:"3q2-7wAAAAAAAAAAAAAAAA"`
}

// VerificationAnswer is the response to a Verification.
type VerificationAnswer struct {
	Challenge string `json:"challenge" doc:"The challenge from the request." example:"3q2-7wAAAAAAAAAAAAAAAA"`
	Signature string `json:"signature,omitempty" doc:"v1, and the base64 form of HMAC-SHA256 over the challenge, made with the endpoint's secret as for webhook-signature. Required if the endpoint's handshake is signed; a wrong one is refused in any case." example:"v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="`
}

// Notice is what has no device and is not in the event log.
type Notice struct {
	EventID     postern.EventID     `json:"eventId" doc:"Unique and stable; use it to detect duplicates." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Timestamp   postern.Time        `json:"timestamp" format:"date-time" doc:"When the event was made." example:"2026-11-21T09:00:00.000Z"`
	DeviceID    string              `json:"deviceId" maxLength:"0" doc:"Empty: it concerns no device." example:""`
	WorkspaceID postern.WorkspaceID `json:"workspaceId" doc:"The workspace of the endpoint." example:"ws_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// TestEvent is sent on request to one endpoint.
type TestEvent struct {
	Notice

	Type postern.EventType `json:"type" enum:"webhook.test" doc:"Always webhook.test." example:"webhook.test"`
	Test postern.Tested    `json:"test" doc:"What is tested."`
}

// DisabledEvent tells an endpoint that another one was disabled.
type DisabledEvent struct {
	Notice

	Type    postern.EventType        `json:"type" enum:"webhook.disabled" doc:"Always webhook.disabled." example:"webhook.disabled"`
	Webhook postern.DisabledEndpoint `json:"webhook" doc:"The endpoint that was disabled."`
}

// Event is any event of the log, told apart by its type.
type Event struct{ Envelope }

// families are the shapes of events that webhooks and the log have.
func families() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[ArrivalEvent](), reflect.TypeFor[MessageEvent](),
		reflect.TypeFor[ActionEvent](), reflect.TypeFor[CallEvent](),
		reflect.TypeFor[ContactEvent](),
		reflect.TypeFor[GroupEvent](),
		reflect.TypeFor[DeviceEvent](),
	}
}

// notices are the shapes of what is posted to endpoints but is not in the log.
func notices() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[Verification](), reflect.TypeFor[TestEvent](),
		reflect.TypeFor[DisabledEvent](),
	}
}

// documentNotifications describes what is posted to endpoints, and that an
// event of the log is one of the same shapes.
func documentNotifications(doc *huma.OpenAPI, book exampleBook) {
	doc.Components.Parameters = deliveryHeaders()
	doc.Webhooks = map[string]*huma.PathItem{}
	union := &huma.Schema{
		Type: huma.TypeObject, Description: "Any event of the log; type says which.",
		Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}},
	}
	for _, t := range families() {
		ref := doc.Components.Schemas.Schema(t, true, "")
		union.OneOf = append(union.OneOf, ref)
		for _, kind := range kindsOf(doc, ref) {
			union.Discriminator.Mapping[kind] = ref.Ref
			doc.Webhooks[kind] = notification(kind, ref, book.webhooks[kind])
		}
	}
	doc.Components.Schemas.Map()["Event"] = union
	for _, t := range notices() {
		ref := doc.Components.Schemas.Schema(t, true, "")
		for _, kind := range kindsOf(doc, ref) {
			doc.Webhooks[kind] = notification(kind, ref, book.webhooks[kind])
		}
	}
	answer := doc.Components.Schemas.Schema(reflect.TypeFor[VerificationAnswer](), true, "")
	doc.Webhooks[string(postern.WebhookVerification)].Post.Responses = map[string]*huma.Response{
		"2XX": {
			Description: "The challenge, as JSON or alone as plain text. A signed handshake needs the JSON.",
			Content:     map[string]*huma.MediaType{JSON: {Schema: answer}, "text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}},
		},
		"default": {Description: "Any other response, or none within 10 seconds, counts as not accepted. The endpoint is asked up to five times within 12 minutes, and then has failed. Retry-After is not read."},
	}
}

func kindsOf(doc *huma.OpenAPI, ref *huma.Schema) (list []string) {
	for _, v := range doc.Components.Schemas.SchemaFromRef(ref.Ref).Properties["type"].Enum {
		if kind, ok := v.(string); ok {
			list = append(list, kind)
		}
	}
	return list
}

// notification describes the POST of one kind of event.
func notification(kind string, body *huma.Schema, example json.RawMessage) *huma.PathItem {
	content := &huma.MediaType{Schema: body}
	if example != nil {
		content.Example = example
	}
	return &huma.PathItem{Post: &huma.Operation{
		OperationID: "on" + camel(kind), Summary: kind, Description: told()[postern.EventType(kind)],
		Tags:     []string{"webhooks"},
		Security: []map[string][]string{{}}, Parameters: deliveryParameters(),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{JSON: content}},
		Responses: map[string]*huma.Response{
			"2XX":     {Description: "Accepted. Postern does not read the response body, but shows its first KiB in the delivery log."},
			"410":     {Description: "The receiver is gone: Postern disables the endpoint at once."},
			"default": {Description: "Not accepted. A redirect, or no response within 15 seconds, counts as not accepted too. Up to 12 attempts are made within 72 hours, and more in the first hour of an outage. Retry-After is honored."},
		},
	}}
}

// camel makes MessageReceived of message.received.
func camel(kind string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(kind, func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// deliveryHeaders are the headers of every POST to an endpoint.
func deliveryHeaders() map[string]*huma.Param {
	header := func(name, text, example string) *huma.Param {
		return &huma.Param{
			Name: name, In: "header", Required: true, Description: text,
			Schema: &huma.Schema{Type: huma.TypeString}, Example: example,
		}
	}
	const signature = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
	return map[string]*huma.Param{
		"webhook-id":          header("webhook-id", "The eventId; the same on every attempt.", "evt_"+exampleULID),
		"webhook-timestamp":   header("webhook-timestamp", "Unix time in seconds at which this attempt was signed. Refuse a request whose time differs from yours by more than a few minutes.", "1795251600"),
		"webhook-signature":   header("webhook-signature", "v1, and base64 of HMAC-SHA256 over webhook-id.webhook-timestamp.body (Standard Webhooks). While a secret is being rotated, there are two signatures, separated by a space.", signature),
		"X-Service-Signature": header("X-Service-Signature", "The same value as webhook-signature, for receivers that read this header instead.", signature),
		"webhook-attempt":     header("webhook-attempt", "Number of the attempt, starting with 1.", "1"),
	}
}

func deliveryParameters() (list []*huma.Param) {
	for name := range deliveryHeaders() {
		list = append(list, &huma.Param{Ref: "#/components/parameters/" + name})
	}
	slices.SortFunc(list, func(x, y *huma.Param) int { return cmp.Compare(x.Ref, y.Ref) })
	return list
}

// told says when an event of each kind is recorded.
func told() map[postern.EventType]string {
	return map[postern.EventType]string{
		postern.MessageReceived:      "A contact sent a message to the device's account.",
		postern.MessageEcho:          "The account sent a message from its phone or from another linked client. It does not count towards the quota.",
		postern.MessageUndecryptable: "A message arrived that could not be read; error says why, and whether the sender was asked to send it again.",
		postern.MessageSent:          "The network accepted a message.",
		postern.MessageDelivered:     "A message arrived at the recipient's phone.",
		postern.MessageRead:          "The recipient has read a message.",
		postern.MessagePlayed:        "The recipient has played a voice message or a video.",
		postern.MessageFailed:        "A message could not be sent; error says why.",
		postern.MessageExpired:       "A message expired before its first attempt.",
		postern.MessageCanceled:      "A message was canceled before its first attempt.",
		postern.MessageReaction:      "Somebody reacted to a message, or took the reaction back; reaction says who and how.",
		postern.MessageEdited:        "The sender of a message changed its text; body is the new one.",
		postern.MessageDeleted:       "The sender of a message, or an administrator of its group, deleted it for everyone.",
		postern.MessagePinned:        "Somebody pinned a message in its chat; pin says who, and pinnedUntil until when.",
		postern.MessageUnpinned:      "Somebody unpinned a message; pin says who. The end of a pin's time is not reported.",
		postern.MessageStarred:       "The account starred a message, here or on its phone.",
		postern.MessageUnstarred:     "The account removed the star of a message, here or on its phone.",
		postern.PollVote:             "Somebody voted in a poll, or took the vote back; vote says who and how, and tally counts all votes.",
		postern.CallReceived:         "A contact called the device's account. Calls can be neither answered nor made here.",
		postern.ContactIdentified:    "The number of a contact became known. If it had a contact of its own, the two were merged, and mergedIds names the one that became a part of this one. The messages of the chat before move to the chat with the number.",
		postern.GroupJoined:          "The account created or joined a group, or somebody added it.",
		postern.GroupLeft:            "The account left a group, or somebody removed it; by says who.",
		postern.GroupUpdated:         "Somebody changed a group; changed names the members of the object that changed. The approval of new members is noticed only when this server changes it, or gets the group.",
		postern.GroupParticipants:    "People joined or left a group, or became administrators, or stopped being administrators. action says what happened, and participants to whom.",
		postern.MediaReadyEv:         "The file of a received message can be read.",
		postern.MediaFailedEv:        "The file of a received message could not be fetched; recoverable says whether a request for it tries again.",
		postern.DeviceLinked:         "A phone scanned the code, and the device is linked to its account.",
		postern.DeviceConnected:      "The session is connected: messages can be sent.",
		postern.DeviceDisconnected:   "The connection was lost, or a new one failed for another reason; statusReason says why. The device reconnects by itself, unless it is quarantined.",
		postern.DeviceRestricted:     "The network restricts the account temporarily.",
		postern.DeviceLoggedOutEv:    "The phone or the network removed the link. Link the device again.",
		postern.DeviceBanned:         "The network banned the account.",
		postern.DeviceConflict:       "The same session was opened by another client.",
		postern.DeviceUnlinked:       "The device was unlinked on request.",
		postern.DevicePaused:         "The device was paused, on request or because of a smaller plan; statusReason says which.",
		postern.DeviceLinking:        "A link attempt was opened, needs its owner, or has ended without a link. status is linking while it is open; statusReason is passkey-required when the network asks for the passkey of the account. If it has ended, status is unlinked, and statusReason says why.",
		postern.DeviceLimited:        "The network no longer lets the account write to people who have never written to it; newChats.until says until when, if it gave a time. Replies still work.",
		postern.DeviceUnlimited:      "The account may start chats again, as far as is known.",
		postern.DevicePhoneUnseen:    "The device is connected, but the account's phone has not been seen for ten days; phoneSeenAt says since when. The network removes the link of a phone that is not used for 14 days: somebody should open the app on it. It is reported once, and again only after the phone was seen.",
		postern.WebhookVerification:  "The challenge that verifies an endpoint: respond within 10 seconds with 2xx and the body {\"challenge\":\"…\"}, or with the challenge alone as plain text. If the endpoint's handshake is signed, the body must also contain the signature of the challenge.",
		postern.WebhookTest:          "Sent on request to one endpoint only (POST /v1/webhooks/{id}/test), whatever events it subscribes to. It is retried like any event, and is not in the event log.",
		postern.WebhookDisabled:      "An endpoint was disabled after failures, or because it responded with 410. Sent only to endpoints that list this type by name; it is not in the event log.",
	}
}
