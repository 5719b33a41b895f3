package spec_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/api"
)

// promised lists the routes of the contract, by path. The document may have more.
func promised() map[string]string {
	const (
		device  = "/v1/devices/{id}"
		message = "/v1/messages/{id}"
		group   = device + "/groups/{chatId}"
		webhook = "/v1/webhooks/{id}"
		sandbox = "/v1/sandbox/devices/{id}"
	)
	return map[string]string{
		"/v1/me": "get", "/v1/usage": "get",

		"/v1/devices": "get post", device: "get patch delete",
		device + "/link": "get post delete", device + "/link/qr.svg": "get", device + "/link/qr.png": "get",
		device + "/link/stream": "get", device + "/link/passkey": "post", device + "/link/confirm": "post",
		device + "/link/page": "post", device + "/unlink": "post", device + "/pause": "post", device + "/resume": "post",
		device + "/contacts/check": "post", device + "/chats/{chatId}/typing": "post",
		device + "/chats/{chatId}/read": "post", device + "/chats/{chatId}/archive": "post",
		device + "/calls/{callId}/reject": "post", device + "/profile": "get put",

		device + "/groups": "get post", group: "get patch", group + "/picture": "put", group + "/participants": "post",
		group + "/invite": "get", group + "/invite/reset": "post", group + "/requests": "get post",
		group + "/leave": "post", device + "/groups/join": "post",

		device + "/channels": "get", device + "/channels/{chatId}": "put delete",

		"/v1/messages": "get post", message: "get patch delete", message + "/reaction": "put delete",
		message + "/votes": "post", message + "/read": "post", message + "/played": "post",
		message + "/pin": "put delete", message + "/star": "put delete", message + "/cancel": "post",
		message + "/timeline": "get", message + "/receipts": "get",
		"/v1/media": "post", "/v1/media/{id}": "get delete", "/v1/media/{id}/content": "get",
		"/v1/chats": "get", "/v1/contacts": "get", "/v1/contacts/{id}": "get delete",

		"/v1/events": "get", "/v1/events/stream": "get", "/v1/webhooks": "get post", webhook: "get patch delete",
		webhook + "/verify": "post", webhook + "/rotate-secret": "post", webhook + "/test": "post",
		webhook + "/pause": "post", webhook + "/resume": "post", webhook + "/replay": "post",
		webhook + "/deliveries": "get", "/v1/replays/{id}": "get delete", "/v1/deliveries/{id}": "get",
		"/v1/deliveries/{id}/retry": "post",

		sandbox + "/scan": "post", sandbox + "/inbound": "post", sandbox + "/receipts": "post",
		sandbox + "/faults": "post", sandbox + "/phone": "get",
	}
}

// document is what these tests read of the OpenAPI document.
type document struct {
	Paths      map[string]map[string]any
	Webhooks   map[string]any
	Components struct {
		Schemas map[string]struct{ Properties map[string]any }
	}
}

func read(t *testing.T) (doc document) {
	t.Helper()
	raw, err := api.Document("")
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The table of routes in the guide names the end of every path; those of the sandbox are in a row of their own.
func TestGuideNamesEveryRoute(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var sandbox, others string
	for line := range strings.Lines(string(guide)) {
		if strings.HasPrefix(line, "| `/v1/sandbox/") {
			sandbox += line
		} else {
			others += line
		}
	}
	for path := range read(t).Paths {
		parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
		parts = slices.DeleteFunc(parts, func(part string) bool { return strings.HasPrefix(part, "{") })
		end, rows := parts[len(parts)-1], others
		if strings.HasPrefix(path, "/v1/sandbox/") {
			rows = sandbox
		}
		if !regexp.MustCompile("[/`]" + regexp.QuoteMeta(end) + "[/`]").MatchString(rows) {
			t.Errorf("the guide does not name %s", path)
		}
	}
}

// promisedEvents lists the events of the contract.
func promisedEvents() []string {
	return strings.Fields(`message.received message.echo message.undecryptable message.edited message.deleted
		message.reaction poll.vote media.ready media.failed message.sent message.delivered message.read message.played
		message.failed message.expired message.canceled device.linked device.connected device.disconnected
		device.restricted device.logged_out device.banned device.conflict device.unlinked device.paused device.limited
		device.unlimited device.linking device.phone_unseen contact.identified group.joined group.left group.updated
		group.participants call.received webhook.verification webhook.test webhook.disabled`)
}

// promisedMembers lists the members of the contract's objects, by the name of their schema.
func promisedMembers() map[string]string {
	return map[string]string{
		"Device": `id name status statusReason restrictedUntil newChats mode phoneNumber displayName metadata pace
			receive queued createdAt linkedAt connectedAt lastSeenAt`,
		"Receive": "direct groups channels status calls history media",
		"Link":    `id deviceId method status qr qrExpiresAt pairingCode passkey confirmationCode expiresAt reason`,
		"Message": `id deviceId direction type chatId from to body media location contacts poll replyTo mentions
			forwarded viewOnce reactions editedAt deletedAt status error networkId source metadata position createdAt
			sendAt sentAt deliveredAt readAt playedAt expiresAt`,
		"Media":        "id mimeType size sha256 filename status duration width height",
		"MediaWithURL": "id mimeType size sha256 filename status duration width height url",
		"Endpoint": `id url pendingUrl description events deviceIds headers status statusReason secretLastFour createdAt
			verifiedAt maxInFlight ordered`,
		"Usage": "month resetsAt messages devices",
	}
}

// notYet lists what the contract promises and Postern does not have yet.
func notYet() []string {
	return nil
}

// TestDocumentHasWhatTheContractPromises compares the routes, events and members of the contract with the document.
// What is not there yet has to be named in notYet, and nothing else may be.
func TestDocumentHasWhatTheContractPromises(t *testing.T) {
	t.Parallel()
	doc := read(t)
	var missing []string
	for path, methods := range promised() {
		for method := range strings.FieldsSeq(methods) {
			if doc.Paths[path][method] == nil {
				missing = append(missing, method+" "+path)
			}
		}
	}
	for _, event := range promisedEvents() {
		if doc.Webhooks[event] == nil {
			missing = append(missing, event)
		}
	}
	for schema, members := range promisedMembers() {
		for member := range strings.FieldsSeq(members) {
			if doc.Components.Schemas[schema].Properties[member] == nil {
				missing = append(missing, schema+"."+member)
			}
		}
	}
	slices.Sort(missing)
	want := slices.Sorted(slices.Values(notYet()))
	if !slices.Equal(missing, want) {
		t.Errorf("the document lacks %q, want %q", missing, want)
	}
}
