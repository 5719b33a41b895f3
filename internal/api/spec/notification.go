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
	EventID     postern.EventID     `json:"eventId" doc:"Stable and unique; deduplicate on it." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Timestamp   postern.Time        `json:"timestamp" format:"date-time" doc:"When it was recorded; never decreases along sequence." example:"2026-11-21T09:00:00.000Z"`
	DeviceID    postern.DeviceID    `json:"deviceId" doc:"The device it is about." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	WorkspaceID postern.WorkspaceID `json:"workspaceId" doc:"The workspace of the device." example:"ws_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Sequence    int64               `json:"sequence" doc:"Place among the events of its device, without holes." example:"17"`
}

// ArrivalEvent tells of a message that arrived, or that the account sent from
// elsewhere.
type ArrivalEvent struct {
	Envelope

	Type    postern.EventType `json:"type" enum:"message.received,message.echo,message.undecryptable" doc:"Kind of the event." example:"message.received"`
	Message *postern.Arrival  `json:"message,omitempty" doc:"Who wrote what; absent once the device was deleted."`
}

// MessageEvent tells how far a message of ours got.
type MessageEvent struct {
	Envelope

	Type    postern.EventType `json:"type" enum:"message.sent,message.delivered,message.read,message.failed,message.expired" doc:"Kind of the event." example:"message.sent"`
	Message *postern.Message  `json:"message,omitempty" doc:"The message as it was then; absent once the device was deleted."`
}

// DeviceEvent tells of a change of a device's session.
type DeviceEvent struct {
	Envelope

	Type   postern.EventType `json:"type" enum:"device.linked,device.connected,device.disconnected,device.restricted,device.logged_out,device.banned,device.conflict,device.unlinked,device.paused" doc:"Kind of the event." example:"device.connected"`
	Device *postern.Device   `json:"device,omitempty" doc:"The device as it was then; absent once it was deleted."`
}

// Verification is the challenge of an endpoint's handshake. It is no event of
// a device, and is not in the log.
type Verification struct {
	EventID   postern.EventID   `json:"eventId" doc:"Names this challenge." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Type      postern.EventType `json:"type" enum:"webhook.verification" doc:"Always webhook.verification." example:"webhook.verification"`
	Timestamp postern.Time      `json:"timestamp" format:"date-time" doc:"When it was made." example:"2026-11-21T09:00:00.000Z"`
	DeviceID  string            `json:"deviceId" maxLength:"0" doc:"Empty: it concerns no device." example:""`
	Challenge string            `json:"challenge" doc:"To be given back." example:"3q2-7wAAAAAAAAAAAAAAAA"`
}

// Event is any event of the log, told apart by its type.
type Event struct{ Envelope }

// families are the shapes of events that webhooks and the log have.
func families() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[ArrivalEvent](), reflect.TypeFor[MessageEvent](), reflect.TypeFor[DeviceEvent]()}
}

// documentNotifications describes what is posted to endpoints, and that an
// event of the log is one of the same shapes.
func documentNotifications(doc *huma.OpenAPI, book exampleBook) {
	doc.Components.Parameters = deliveryHeaders()
	doc.Webhooks = map[string]*huma.PathItem{}
	union := &huma.Schema{
		Type: huma.TypeObject, Description: "Any event of the log. type tells which.",
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
	challenge := doc.Components.Schemas.Schema(reflect.TypeFor[Verification](), true, "")
	for _, kind := range kindsOf(doc, challenge) {
		doc.Webhooks[kind] = notification(kind, challenge, book.webhooks[kind])
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
		OperationID: "on" + camel(kind), Summary: kind, Description: told()[postern.EventType(kind)], Tags: []string{"webhooks"},
		Security: []map[string][]string{{}}, Parameters: deliveryParameters(),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{JSON: content}},
		Responses: map[string]*huma.Response{
			"2XX":     {Description: "Taken. Of the body only the challenge of a verification is read."},
			"410":     {Description: "The endpoint is gone: it is disabled at once."},
			"default": {Description: "Not taken, as is no answer within 15 seconds and a redirect: up to 12 attempts are made within 72 hours. Retry-After is honoured."},
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
		return &huma.Param{Name: name, In: "header", Required: true, Description: text, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
	}
	const signature = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
	return map[string]*huma.Param{
		"webhook-id":          header("webhook-id", "The eventId. It is the same at every attempt.", "evt_"+exampleULID),
		"webhook-timestamp":   header("webhook-timestamp", "Seconds since 1970 when this attempt was signed. Refuse what is more than some minutes away.", "1795251600"),
		"webhook-signature":   header("webhook-signature", "v1, and base64 of HMAC-SHA256 over webhook-id.webhook-timestamp.body (Standard Webhooks). While a secret is being rotated there are two, with a space between.", signature),
		"X-Service-Signature": header("X-Service-Signature", "The same value as webhook-signature.", signature),
		"webhook-attempt":     header("webhook-attempt", "Which attempt this is, from 1.", "1"),
	}
}

func deliveryParameters() (list []*huma.Param) {
	for name := range deliveryHeaders() {
		list = append(list, &huma.Param{Ref: "#/components/parameters/" + name})
	}
	slices.SortFunc(list, func(x, y *huma.Param) int { return cmp.Compare(x.Ref, y.Ref) })
	return list
}

// told says when each kind of event is made.
func told() map[postern.EventType]string {
	return map[postern.EventType]string{
		postern.MessageReceived:      "A contact wrote to a device's account.",
		postern.MessageEcho:          "The account sent a message from its phone or from another companion. It costs no quota.",
		postern.MessageUndecryptable: "A message arrived that could not be decrypted; the sender was asked to send it again.",
		postern.MessageSent:          "The network took a message.",
		postern.MessageDelivered:     "A message arrived at the recipient's phone.",
		postern.MessageRead:          "The recipient has read a message.",
		postern.MessageFailed:        "A message was not sent; error says why.",
		postern.MessageExpired:       "A message was given up before its first attempt.",
		postern.DeviceLinked:         "A phone scanned the code: the device has an account.",
		postern.DeviceConnected:      "The session is live: sends can succeed.",
		postern.DeviceDisconnected:   "The session was lost; it is being tried again.",
		postern.DeviceRestricted:     "The network restricts the account for a time.",
		postern.DeviceLoggedOutEv:    "The phone or the network removed the link; link again.",
		postern.DeviceBanned:         "The network has banned the account.",
		postern.DeviceConflict:       "The same session was opened elsewhere.",
		postern.DeviceUnlinked:       "The device was unlinked by a request.",
		postern.DevicePaused:         "The device was paused, by a request or by a smaller plan; statusReason says which.",
		postern.WebhookVerification:  "The handshake of an endpoint: answer 2xx within 10 seconds with {\"challenge\":\"…\"}, or with the bare challenge as text.",
	}
}
