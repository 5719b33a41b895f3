package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/api"
	"postern/internal/gateway"
	"postern/internal/media/library"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/storetest"
)

// route is how the table of actors uses an operation: build makes what it is
// about in a tenant and gives the target and the body.
type route struct {
	method  string
	ok      int
	foreign bool // it names something, so that a stranger gets 403
	build   func(t *tenant) (target, body string)
}

func connected(t *tenant) string { return string(t.device("d", postern.Connected)) }

func unlinked(t *tenant) string { return string(t.device("d", postern.Unlinked)) }

func paused(t *tenant) string {
	id := connected(t)
	t.do("POST", "/v1/devices/"+id+"/pause", "").want(http.StatusOK, "")
	return id
}

func linking(t *tenant) string {
	id := t.device("d", postern.Unlinked)
	t.do("POST", "/v1/devices/"+string(id)+"/link", "").want(http.StatusCreated, "")
	t.showCode(id, "code", time.Now().Add(time.Minute))
	return string(id)
}

// looking is a device with an open link attempt, which the routes share that leave it open.
func looking(t *tenant) string {
	t.open.Do(func() { t.looked = linking(t) })
	return t.looked
}

// aPicture is the body that sets a picture.
func aPicture() string {
	return `{"media":{"data":"` + base64.StdEncoding.EncodeToString(jpegFile()) + `","mimeType":"image/jpeg"}}`
}

// theChallenge is what the network asks for.
const theChallenge = "Y2hhbGxlbmdl"

// wantingPasskey is a device for which the network asks for the passkey, and the body with the answer. Nobody here has
// the public key, so nothing checks its signature.
func wantingPasskey(t *tenant) (id, body string) {
	id = linking(t)
	o := postern.PasskeyOptions{
		Challenge: theChallenge, Domain: "whatsapp.com", AllowCredentials: []postern.PasskeyAllowed{},
		UserVerification: "required", Extensions: map[string]any{},
	}
	device := postern.DeviceID(id)
	d, err := t.db.Devices.ForEngine(t.t.Context(), device)
	if err == nil {
		err = t.g.Sessions.WantPasskey(t.t.Context(), d, t.openLink(device), o)
	}
	if err != nil {
		t.t.Fatal(err)
	}
	return id, credentialBody(o.Challenge)
}

func owing(t *tenant) string {
	id, _ := wantingPasskey(t)
	return id
}

// credentialBody answers a challenge.
func credentialBody(challenge string) string {
	hash := sha256.Sum256([]byte("whatsapp.com"))
	text := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"credential":{"id":"aWQ","rawId":"aWQ","type":"public-key","authenticatorAttachment":"platform",`+
		`"response":{"clientDataJSON":%q,"authenticatorData":%q,"signature":"c2ln","userHandle":null}}}`,
		text(fmt.Appendf(nil, `{"type":"webauthn.get","challenge":%q,"origin":"https://web.whatsapp.com"}`, challenge)),
		text(append(hash[:], 5, 0, 0, 0, 0)))
}

// comparing is a device whose owner is to compare a code.
func comparing(t *tenant) string {
	id, body := wantingPasskey(t)
	t.do("POST", "/v1/devices/"+id+"/link/passkey", body).want(http.StatusAccepted, "")
	if err := t.g.Sessions.CompareCode(t.t.Context(), t.openLink(postern.DeviceID(id)), "K7QM-2XB4"); err != nil {
		t.t.Fatal(err)
	}
	return id
}

func (t *tenant) showCode(id postern.DeviceID, text string, until time.Time) {
	t.t.Helper()
	changes := t.g.Sessions.WatchLink(id)
	defer changes.Close()
	t.g.Sessions.ShowCode(t.openLink(id), text, postern.TimeOf(until))
	for t.openLink(id).QRExpiresAt != postern.TimeOf(until) { // another server may tell of an earlier change
		select {
		case <-changes.C():
			changes.Take()
		case <-t.t.Context().Done():
			t.t.Fatal("a code was not stored")
		}
	}
}

func webhook(t *tenant) string {
	a := t.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/a","deviceIds":["`+connected(t)+`"]}`)
	a.want(http.StatusCreated, "")
	return a.member("id")
}

// met returns the device of the groups, to which somebody new has written, and the id of the contact.
func met(t *tenant) (device, contact string) {
	device = member(t)
	number := fmt.Sprintf("%04d", 1000+t.people.Add(1))
	m := postern.Message{
		WorkspaceID: t.ws, DeviceID: postern.DeviceID(device), Direction: postern.Inbound, Status: postern.Received,
		ChatID: "+1555123" + number, From: postern.Maybe("+1555123" + number), FromLID: "12345678901" + number,
		FromName: "Ada", Content: postern.Text("Hi"), NetworkID: postern.NewNetworkID(), Source: postern.FromContact,
	}
	if err := t.g.Sessions.Receive(t.t.Context(), m, "lid:"+m.FromLID, postern.MessageReceived, gateway.ArrivedFile{}); err != nil {
		t.t.Fatal(err)
	}
	return device, t.do("GET", "/v1/contacts?chatId=%2B1555123"+number, "").list().Data[0].ID
}

func contact(t *tenant) string {
	_, id := met(t)
	return id
}

// delivery makes an active endpoint and an event for it.
func delivery(t *tenant) string {
	id, device := webhook(t), postern.DeviceID("")
	e, err := t.g.Webhooks.Get(t.t.Context(), t.caller(), postern.EndpointID(id))
	if err == nil {
		device = e.DeviceIDs[0]
		err = t.db.Endpoints.Activate(t.t.Context(), postern.EndpointID(id), postern.TimeOf(time.Now()))
	}
	if err == nil {
		m := postern.Message{
			WorkspaceID: t.ws, DeviceID: device, Direction: postern.Inbound, Status: postern.Received,
			ChatID: "+15551234567", From: "+15551234567", Content: postern.Text("Hi"), NetworkID: "n",
			Source: postern.FromContact,
		}
		err = t.g.Sessions.Receive(t.t.Context(), m, "+15551234567", postern.MessageReceived, gateway.ArrivedFile{})
	}
	if err != nil {
		t.t.Fatal(err)
	}
	if l := t.do("GET", "/v1/webhooks/"+id+"/deliveries?status=pending", "").list(); len(l.Data) != 1 {
		t.t.Fatalf("%d deliveries", len(l.Data))
	}
	return id
}

// delivered makes an endpoint that took its event.
func delivered(t *tenant) string {
	id := postern.EndpointID(delivery(t))
	now := postern.TimeOf(time.Now())
	due, err := t.db.Deliveries.Due(t.t.Context(), id, now, true, 1)
	if err == nil {
		err = t.db.Deliveries.FinishAttempt(t.t.Context(), store.Attempt{
			DeliveryID: due[0].ID, Row: due[0].Row,
			EndpointID: id, Number: 1, At: now, Ended: now.Add(42 * time.Millisecond), HTTPStatus: 200,
			Status: postern.DeliverySucceeded,
		})
	}
	if err != nil {
		t.t.Fatal(err)
	}
	return string(id)
}

// oneDelivery is the id of that delivery.
func oneDelivery(t *tenant) string {
	return t.do("GET", "/v1/webhooks/"+delivery(t)+"/deliveries", "").list().Data[0].ID
}

func replay(t *tenant) string {
	a := t.do("POST", "/v1/webhooks/"+delivery(t)+"/replay", "")
	a.want(http.StatusAccepted, "")
	return a.member("id")
}

func message(t *tenant) (device, id string) {
	device = connected(t)
	return device, messageOf(t, device)
}

// messageOf sends a message from a device.
func messageOf(t *tenant, device string) (id string) {
	a := t.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","body":"Hello"}`)
	a.want(http.StatusAccepted, "")
	return a.member("id")
}

// poll sends a poll, and received lets a message arrive.
func poll(t *tenant, device string) (id string) {
	return t.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","type":"poll",`+
		`"poll":{"question":"Where?","options":["Here","Online"]}}`).member("id")
}

func received(t *tenant, device string) (id string) {
	t.receive(postern.DeviceID(device), "Hello")
	return t.do("GET", "/v1/messages?direction=inbound&deviceId="+device, "").list().Data[0].ID
}

// heard is a voice message that was received.
func heard(t *tenant, device string) (id string) {
	t.hear(postern.DeviceID(device))
	return t.do("GET", "/v1/messages?direction=inbound&deviceId="+device, "").list().Data[0].ID
}

// upload keeps a file and returns its id.
func upload(t *tenant) string {
	a := t.do("POST", "/v1/media?filename=hello.txt", "Hello", "Content-Type", "text/plain")
	a.want(http.StatusCreated, "")
	return a.member("id")
}

// receivedFile is a file that came with a message.
func receivedFile(t *tenant) string {
	device := connected(t)
	id, room := postern.NewMediaID(), postern.Storage{Limit: postern.MaxMedia}
	err := t.library.Take(t.t.Context(), t.ws, strings.NewReader("Hello"), room, func(m library.Taken) error {
		m.ID, m.Filename = id, "hello.txt"
		return t.db.Media.Add(t.t.Context(), store.MediaRow{
			Media: m.Media, WorkspaceID: t.ws, DeviceID: postern.DeviceID(device), MessageID: postern.NewMessageID(),
			CreatedAt: postern.TimeOf(time.Now()),
		}, nil)
	})
	if err != nil {
		t.t.Fatal(err)
	}
	return string(id)
}

// acted is a request for an action on a message that was sent.
func acted(suffix, body string) func(*tenant) (string, string) {
	return func(t *tenant) (string, string) {
		t.once.Do(func() { t.acted = connected(t) })
		return "/v1/messages/" + messageOf(t, t.acted) + suffix, body
	}
}

func at(prefix string, id func(*tenant) string, suffix, body string) func(*tenant) (string, string) {
	return func(t *tenant) (string, string) { return prefix + id(t) + suffix, body }
}

// inChat asks something about a chat with a message.
func inChat(suffix, body string) func(*tenant) (string, string) {
	return func(t *tenant) (string, string) {
		id := member(t)
		received(t, id)
		return "/v1/devices/" + id + "/chats/+15551234567" + suffix, body
	}
}

func fixed(target, body string) func(*tenant) (string, string) {
	return func(*tenant) (string, string) { return target, body }
}

func routes() map[string]route {
	const devices, webhooks, box = "/v1/devices/", "/v1/webhooks/", "/v1/sandbox/devices/"
	return map[string]route{
		"listDevices":  {"GET", 200, false, fixed("/v1/devices", "")},
		"createDevice": {"POST", 201, false, fixed("/v1/devices", `{"name":"Support"}`)},
		"getDevice":    {"GET", 200, true, at(devices, connected, "", "")},
		"updateDevice": {"PATCH", 200, true, at(devices, connected, "", `{"name":"Sales"}`)},
		"deleteDevice": {"DELETE", 204, true, at(devices, connected, "", "")},
		"pauseDevice":  {"POST", 200, true, at(devices, connected, "/pause", "")},
		"resumeDevice": {"POST", 200, true, at(devices, paused, "/resume", "")},
		"unlinkDevice": {"POST", 200, true, at(devices, connected, "/unlink", "")},
		"openLink":     {"POST", 201, true, at(devices, unlinked, "/link", `{"method":"qr"}`)},
		"getLink":      {"GET", 200, true, at(devices, looking, "/link", "")},
		"openLinkPage": {"POST", 201, true, at(devices, looking, "/link/page", "")},
		"answerPasskey": {"POST", 202, true, func(t *tenant) (string, string) {
			id, body := wantingPasskey(t)
			return devices + id + "/link/passkey", body
		}},
		"confirmLink": {"POST", 202, true, at(devices, comparing, "/link/confirm", "")},
		"cancelLink":  {"DELETE", 204, true, at(devices, linking, "/link", "")},
		"getLinkSVG":  {"GET", 200, true, at(devices, looking, "/link/qr.svg", "")},
		"getLinkPNG":  {"GET", 200, true, at(devices, looking, "/link/qr.png", "")},
		"streamLink": {"GET", 200, true, func(t *tenant) (string, string) {
			id := linking(t)
			t.do("DELETE", devices+id+"/link", "").want(http.StatusNoContent, "")
			return devices + id + "/link/stream", ""
		}},
		"listContacts": {"GET", 200, true, func(t *tenant) (string, string) {
			device, _ := met(t)
			return "/v1/contacts?deviceId=" + device, ""
		}},
		"getContact": {"GET", 200, true, func(t *tenant) (string, string) {
			_, id := met(t)
			return "/v1/contacts/" + id, ""
		}},
		"eraseContact": {"DELETE", 204, true, func(t *tenant) (string, string) {
			_, id := met(t)
			return "/v1/contacts/" + id, ""
		}},
		"getContactPicture": {"GET", 200, true, func(t *tenant) (string, string) {
			device, id := met(t)
			return devices + device + "/contacts/" + id + "/picture", ""
		}},
		"checkNumbers":   {"POST", 200, true, at(devices, member, "/contacts/check", `{"phoneNumbers":["+15551234567"]}`)},
		"listBlocked":    {"GET", 200, true, at(devices, member, "/blocked", "")},
		"blockContact":   {"PUT", 204, true, at(devices, member, "/blocked/+15551234567", "{}")},
		"unblockContact": {"DELETE", 204, true, at(devices, member, "/blocked/+15551234567", "")},
		"showTyping":     {"POST", 204, true, at(devices, member, "/chats/+15551234567/typing", `{"typing":"text"}`)},
		"streamPresence": {"GET", 200, true, at(devices, member, "/presence/stream?chatId=%2B15551234567", "")},
		"rejectCall":     {"POST", 204, true, at(devices, member, "/calls/3EB0A1B2C3D4E5F60718/reject", "{}")},
		"listChats": {"GET", 200, true, func(t *tenant) (string, string) {
			id := member(t)
			received(t, id)
			return "/v1/chats?deviceId=" + id, ""
		}},
		"getChat":       {"GET", 200, true, inChat("", "")},
		"markChatRead":  {"POST", 202, true, inChat("/read", "{}")},
		"archiveChat":   {"POST", 200, true, inChat("/archive", `{"archived":true}`)},
		"muteChat":      {"POST", 200, true, inChat("/mute", `{"muted":true}`)},
		"listSubgroups": {"GET", 200, true, at(devices, member, aGroup+"/subgroups", "")},
		"linkGroup":     {"PUT", 204, true, at(devices, member, aGroup+"/subgroups/group:120363041234567891", "{}")},
		"unlinkGroup":   {"DELETE", 204, true, at(devices, member, aGroup+"/subgroups/group:120363041234567891", "")},
		"labelChat":     {"PUT", 200, true, inChat("/labels/5", "{}")},
		"unlabelChat":   {"DELETE", 200, true, inChat("/labels/5", "")},
		"listLabels":    {"GET", 200, true, at(devices, member, "/labels", "")},
		"createLabel":   {"POST", 201, true, at(devices, member, "/labels", `{"name":"New customer","color":3}`)},
		"updateLabel":   {"PATCH", 200, true, at(devices, member, "/labels/5", `{"color":4}`)},
		"deleteLabel":   {"DELETE", 204, true, at(devices, member, "/labels/5", "")},
		"getProfile":    {"GET", 200, true, at(devices, member, "/profile", "")},
		"setProfile":    {"PUT", 200, true, at(devices, member, "/profile", `{"name":"Acme","about":"We answer from 9 to 5","media":null}`)},
		"listGroups":    {"GET", 200, true, at(devices, member, "/groups", "")},
		"askHistory": {"POST", 202, true, func(t *tenant) (string, string) {
			device := member(t)
			received(t, device)
			return devices + device + "/chats/+15551234567/history", `{"count":50}`
		}},
		"createGroup": {"POST", 201, true, at(
			devices, member, "/groups", `{"subject":"Support","participants":["+15551234567","+15557654321"]}`)},
		"listChannels":       {"GET", 200, true, at(devices, member, "/channels", "")},
		"followByInvite":     {"POST", 200, true, at(devices, member, "/channels/follow", `{"invite":"0029VaJt3mHkq0s7c9oWf2"}`)},
		"followChannel":      {"PUT", 200, true, at(devices, member, aChannel, "{}")},
		"unfollowChannel":    {"DELETE", 204, true, at(devices, member, aChannel, "")},
		"joinGroup":          {"POST", 200, true, at(devices, member, "/groups/join", `{"invite":"Jt3mHkq0s7c9oWf2Yv1xZb"}`)},
		"getGroup":           {"GET", 200, true, at(devices, member, aGroup, "")},
		"updateGroup":        {"PATCH", 200, true, at(devices, member, aGroup, `{"subject":"Sales"}`)},
		"changeParticipants": {"POST", 200, true, at(devices, member, aGroup+"/participants", `{"add":["+15551234567"]}`)},
		"getGroupPicture":    {"GET", 200, true, at(devices, member, aGroup+"/picture", "")},
		"setGroupPicture":    {"PUT", 204, true, at(devices, member, aGroup+"/picture", aPicture())},
		"removeGroupPicture": {"DELETE", 204, true, at(devices, member, aGroup+"/picture", "")},
		"getInvite":          {"GET", 200, true, at(devices, member, aGroup+"/invite", "")},
		"resetInvite":        {"POST", 200, true, at(devices, member, aGroup+"/invite/reset", "{}")},
		"listJoinRequests":   {"GET", 200, true, at(devices, member, aGroup+"/requests", "")},
		"answerJoinRequests": {"POST", 200, true, at(devices, member, aGroup+"/requests", `{"approve":["+15551234567"]}`)},
		"leaveGroup":         {"POST", 204, true, at(devices, member, aGroup+"/leave", "{}")},
		"sendMessage": {"POST", 202, true, func(t *tenant) (string, string) {
			return "/v1/messages", `{"deviceId":"` + connected(t) + `","to":"+15551234567","body":"Hello"}`
		}},
		"listMessages": {"GET", 200, true, at("/v1/messages?deviceId=", member, "", "")},
		"getMessage": {"GET", 200, true, func(t *tenant) (string, string) {
			_, id := message(t)
			return "/v1/messages/" + id, ""
		}},
		"getMessageTimeline": {"GET", 200, true, func(t *tenant) (string, string) {
			_, id := message(t)
			return "/v1/messages/" + id + "/timeline", ""
		}},
		"getMessageReceipts": {"GET", 200, true, func(t *tenant) (string, string) {
			_, id := message(t)
			return "/v1/messages/" + id + "/receipts", ""
		}},
		"reactToMessage": {"PUT", 202, true, acted("/reaction", `{"emoji":"👍"}`)},
		"removeReaction": {"DELETE", 202, true, acted("/reaction", "")},
		"pinMessage":     {"PUT", 202, true, acted("/pin", `{"duration":86400}`)},
		"unpinMessage":   {"DELETE", 202, true, acted("/pin", "")},
		"starMessage":    {"PUT", 202, true, acted("/star", "{}")},
		"unstarMessage":  {"DELETE", 202, true, acted("/star", "")},
		"editMessage":    {"PATCH", 202, true, acted("", `{"body":"Hello again"}`)},
		"deleteMessage":  {"DELETE", 202, true, acted("", "")},
		"cancelMessage":  {"POST", 200, true, acted("/cancel", "")},
		"voteInPoll": {"POST", 202, true, func(t *tenant) (string, string) {
			return "/v1/messages/" + poll(t, connected(t)) + "/votes", `{"options":["Online"]}`
		}},
		"markMessageRead": {"POST", 202, true, func(t *tenant) (string, string) {
			return "/v1/messages/" + received(t, connected(t)) + "/read", ""
		}},
		"markMessagePlayed": {"POST", 202, true, func(t *tenant) (string, string) {
			return "/v1/messages/" + heard(t, connected(t)) + "/played", ""
		}},
		"uploadMedia":     {"POST", 201, false, fixed("/v1/media?filename=hello.txt", "Hello")},
		"getMedia":        {"GET", 200, true, at("/v1/media/", receivedFile, "", "")},
		"getMediaContent": {"GET", 200, true, at("/v1/media/", receivedFile, "/content", "")},
		"deleteMedia":     {"DELETE", 204, true, at("/v1/media/", receivedFile, "", "")},
		"listWebhooks":    {"GET", 200, false, fixed("/v1/webhooks", "")},
		"createWebhook": {"POST", 201, true, func(t *tenant) (string, string) {
			return "/v1/webhooks", `{"url":"https://hooks.test/a","deviceIds":["` + connected(t) + `"]}`
		}},
		"getWebhook":       {"GET", 200, true, at(webhooks, webhook, "", "")},
		"deleteWebhook":    {"DELETE", 204, true, at(webhooks, webhook, "", "")},
		"updateWebhook":    {"PATCH", 200, true, at(webhooks, webhook, "", `{"description":"x"}`)},
		"verifyWebhook":    {"POST", 200, true, at(webhooks, webhook, "/verify", "")},
		"pauseWebhook":     {"POST", 200, true, at(webhooks, webhook, "/pause", "")},
		"resumeWebhook":    {"POST", 200, true, at(webhooks, webhook, "/resume", "")},
		"rotateSecret":     {"POST", 200, true, at(webhooks, webhook, "/rotate-secret", `{"overlapSeconds":0}`)},
		"testWebhook":      {"POST", 202, true, at(webhooks, delivery, "/test", "")},
		"createReplay":     {"POST", 202, true, at(webhooks, delivery, "/replay", `{"onlyFailed":true}`)},
		"getReplay":        {"GET", 200, true, at("/v1/replays/", replay, "", "")},
		"stopReplay":       {"DELETE", 204, true, at("/v1/replays/", replay, "", "")},
		"listDeliveries":   {"GET", 200, true, at(webhooks, delivery, "/deliveries", "")},
		"getWebhookStats":  {"GET", 200, true, at(webhooks, delivery, "/stats", "")},
		"getDelivery":      {"GET", 200, true, at("/v1/deliveries/", oneDelivery, "", "")},
		"retryDelivery":    {"POST", 202, true, at("/v1/deliveries/", oneDelivery, "/retry", "")},
		"listEvents":       {"GET", 200, true, at("/v1/events?deviceId=", connected, "", "")},
		"streamEvents":     {"GET", 200, true, at("/v1/events/stream?deviceId=", connected, "", "")},
		"getMe":            {"GET", 200, false, fixed("/v1/me", "")},
		"getUsage":         {"GET", 200, false, fixed("/v1/usage", "")},
		"scanInSandbox":    {"POST", 200, true, at(box, linking, "/scan", "")},
		"receiveInSandbox": {"POST", 200, true, at(box, member, "/inbound", `{"from":"+15551234567","body":"Hi"}`)},
		"rememberInSandbox": {"POST", 204, true, at(box, member, "/history",
			`{"from":"+15551234567","messages":[{"body":"Hello","sentAt":"2026-10-01T09:00:00Z"}]}`)},
		"getPasskeyInSandbox": {"POST", 200, true, func(t *tenant) (string, string) {
			id, _ := wantingPasskey(t)
			return box + id + "/passkey", `{"mistake":"signature"}`
		}},
		"appearInSandbox":      {"POST", 204, true, at(box, member, "/presence", `{"from":"+15551234567","typing":"text"}`)},
		"callInSandbox":        {"POST", 200, true, at(box, member, "/calls", `{"from":"+15551234567"}`)},
		"changeGroupInSandbox": {"PATCH", 204, true, at(box, member, aGroup, `{"from":"+15551234567","subject":"Sales"}`)},
		"createChannelInSandbox": {
			"POST", 200, true, at(box, member, "/channels", `{"name":"Opening hours","from":"+15551234567","admin":true}`),
		},
		"createGroupInSandbox": {
			"POST", 200, true, at(box, member, "/groups", `{"subject":"Support","participants":["+15551234567"]}`),
		},
		"confirmInSandbox": {"POST", 204, true, func(t *tenant) (string, string) {
			device, id := message(t)
			return box + device + "/receipts", `{"messageId":"` + id + `","status":"read"}`
		}},
		"setContactInSandbox": {"POST", 204, true, at(box, member, "/contacts", `{"phoneNumber":"+15551234567","name":"Ada"}`)},
		"setChatInSandbox":    {"POST", 204, true, at(box, member, "/chats", `{"chatId":"+15551234567","archived":true,"label":"New customer"}`)},
		"breakInSandbox":      {"POST", 204, true, at(box, connected, "/faults", `{"kind":"drop"}`)},
		"showSandboxPhone":    {"GET", 200, true, at(box, member, "/phone", "")},
	}
}

// TestEveryRouteIsInTheTableOfActors compares the table with what is served.
func TestEveryRouteIsInTheTableOfActors(t *testing.T) {
	t.Parallel()
	spec, err := newServer(t).api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(spec, &doc); err != nil {
		t.Fatal(err)
	}
	n, table := 0, routes()
	for path, methods := range doc.Paths {
		for method, op := range methods {
			n++
			if r, ok := table[op.OperationID]; !ok || !strings.EqualFold(r.method, method) {
				t.Errorf("%s %s (%s) has no entry in the table of actors", method, path, op.OperationID)
			}
		}
	}
	if n != len(table) || n != len(api.Operations()) {
		t.Errorf("%d operations are served, %d are tested, %d have scopes", n, len(table), len(api.Operations()))
	}
}

// serversOfActors is how many servers the operations of TestActors share.
const serversOfActors = 8

// TestActors goes to every route as everyone who is refused there, and looks that the owner's rows
// are what they were. Then it goes there with a key that has the scopes which are needed, and no
// others.
func TestActors(t *testing.T) {
	t.Parallel()
	var servers []*server
	for range serversOfActors {
		servers = append(servers, newServer(t))
	}
	rows := walk()
	for i, id := range api.Operations() {
		want, ok := rows[id]
		if !ok {
			t.Errorf("%s has no row in the table of statuses", id)
			continue
		}
		delete(rows, id)
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			s := servers[i%len(servers)].in(t)
			visitAsEveryone(s.tenant("enterprise"), s.tenant("enterprise"), id, want)
		})
	}
	for id := range rows {
		t.Errorf("there is a row for %s, which is no operation", id)
	}
}

// in is the server in another test.
func (s *server) in(t testing.TB) *server {
	other := *s
	other.t = t
	return &other
}

func visitAsEveryone(owner, stranger *tenant, id string, want statuses) {
	t, r := owner.t, routes()[id]
	t.Helper()
	target, body := r.build(owner)
	theirs, theirBody := r.build(stranger) // the same of the stranger's own
	bad, actors := badKeys(owner), actorsAt(owner, stranger, id, want)
	before := storetest.RowsOf(t, owner.dir, string(owner.ws))
	refusedWithoutAGoodKey(owner, bad, r.method, target, body)
	for _, a := range actors {
		a.asks(r.method, target, body, before)
	}
	if r.foreign {
		stranger.namesOneThing(r.method, [2]string{target, body}, [2]string{theirs, theirBody})
	}
	after := storetest.RowsOf(t, owner.dir, string(owner.ws))
	if id == "uploadMedia" { // what the key that is limited to a device has uploaded
		after = slices.DeleteFunc(after, func(row string) bool {
			table, _, _ := strings.Cut(row, " ")
			return slices.Contains([]string{"media", "blob", "storage"}, table)
		})
	}
	unchanged(t, before, after)
	scopes := api.ScopesOf(id)
	if len(scopes) == 0 { // an operation that every key may use
		scopes = []postern.Scope{postern.UsageRead}
	}
	narrow := owner.with(owner.newKey(gateway.NewKey{Scopes: scopes}))
	a := narrow.do(r.method, target, body)
	a.want(r.ok, "")
	if a.Header().Get("RateLimit") == "" || a.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers of a good answer: %v", a.Header())
	}
}

func (t *tenant) with(key string) *tenant { return &tenant{server: t.server, ws: t.ws, key: key} }

// revoked makes a key that is revoked.
func (t *tenant) revoked() string {
	t.t.Helper()
	key := t.newKey(gateway.NewKey{})
	caller, err := t.g.Keys.Authenticate(t.t.Context(), "Bearer "+key)
	if err == nil {
		err = t.g.Keys.Revoke(t.t.Context(), access.Operator(), t.ws, caller.Key.ID)
	}
	if err != nil {
		t.t.Fatal(err)
	}
	return key
}

// badKeys are headers that let nobody in.
func badKeys(owner *tenant) map[string]string {
	owner.t.Helper()
	expired := owner.newKey(gateway.NewKey{ExpiresAt: postern.TimeOf(time.Now().Add(-time.Minute))})
	return map[string]string{
		"none": "", "malformed": "Bearer pst_canary", "damaged": "Bearer " + owner.key[:len(owner.key)-1] + "!",
		"no scheme": owner.key, "basic": "Basic " + owner.key, "two spaces": "Bearer  " + owner.key,
		"unknown": "Bearer " + postern.NewKeySecret(), "revoked": "Bearer " + owner.revoked(), "expired": "Bearer " + expired,
	}
}

// refusedWithoutAGoodKey sends bad keys, with a good one in the URL, and then none at all.
func refusedWithoutAGoodKey(owner *tenant, bad map[string]string, method, target, body string) {
	t := owner.t
	t.Helper()
	sep := "?"
	if strings.Contains(target, "?") {
		sep = "&"
	}
	var bodies []string
	for name, header := range bad {
		a := owner.server.do(method, target+sep+"token="+owner.key+"&key="+owner.key, body, "Authorization", header)
		a.what += " with key " + name
		p := a.want(http.StatusUnauthorized, postern.Unauthorized)
		if a.Header().Get("WWW-Authenticate") != "Bearer" || a.Header().Get("RateLimit") != `"address";r=600;t=0` {
			t.Errorf("%s: headers %v", a.what, a.Header())
		}
		bodies = append(bodies, strings.ReplaceAll(a.Body.String(), p.RequestID, ""))
	}
	if slices.Sort(bodies); len(slices.Compact(bodies)) != 1 {
		t.Errorf("%s %s: the bodies of 401 differ: %s", method, target, bodies)
	}
	owner.server.do(method, target, body).want(http.StatusUnauthorized, postern.Unauthorized)
}

// actor is somebody with a good key, and what is answered.
type actor struct {
	*tenant

	name   string
	status int
	reason postern.Reason
	detail string         // a part of the refusal
	shown  map[string]int // how often a word may be in the answer
}

func actorsAt(owner, stranger *tenant, id string, want statuses) (list []actor) {
	owner.t.Helper()
	refused := func(status int) postern.Reason {
		if status >= 400 {
			return postern.ResourceNotAllowed
		}
		return ""
	}
	limited := owner.newKey(gateway.NewKey{Devices: []postern.DeviceID{owner.device("another", postern.Unlinked)}})
	outside := actor{tenant: owner.with(limited), name: "outside", status: want.outside, reason: refused(want.outside)}
	visitor := actor{tenant: stranger, name: "stranger", status: want.stranger, reason: refused(want.stranger)}
	if r := routes()[id]; r.method == http.MethodGet && !r.foreign {
		visitor.shown = map[string]int{"whk_": 0}
		if id != "getMe" {
			outside.shown = map[string]int{`"id"`: 1}
		}
	}
	free := actor{
		tenant: owner.server.tenant("free"), name: "free", status: want.free, reason: postern.PlanWithoutAPI,
	}
	list = []actor{free, outside, visitor}
	for _, missing := range api.ScopesOf(id) {
		others := slices.DeleteFunc(postern.Scopes(), func(s postern.Scope) bool { return s == missing })
		list = append(list, actor{
			tenant: owner.with(owner.newKey(gateway.NewKey{Scopes: others})), name: "without " + string(missing),
			status: want.scopeless, reason: postern.MissingScope, detail: string(missing),
		})
	}
	if len(api.ScopesOf(id)) == 0 {
		every := owner.newKey(gateway.NewKey{Scopes: postern.Scopes()})
		list = append(list, actor{tenant: owner.with(every), name: "with every scope", status: want.scopeless})
	}
	return list
}

// asks makes the request. Who is not refused sees nothing of the owner's, whose rows these are.
func (a actor) asks(method, target, body string, owners []string) {
	t := a.t
	t.Helper()
	ans := a.do(method, target, body)
	ans.what += " as " + a.name
	if p := ans.want(a.status, a.reason); !strings.Contains(p.Detail, a.detail) {
		t.Errorf("%s: the detail %q does not name %s", ans.what, p.Detail, a.detail)
	}
	text := ans.Body.String()
	for word, most := range a.shown {
		if strings.Count(text, word) > most {
			t.Errorf("%s shows what is not the caller's: %s", ans.what, text)
		}
	}
	if a.name == "stranger" && slices.ContainsFunc(anID.FindAllString(text, -1), func(id string) bool {
		return slices.ContainsFunc(owners, func(row string) bool { return strings.Contains(row, id) })
	}) {
		t.Errorf("%s is shown what is the owner's: %s", a.name, text)
	}
}

// TestUnknownIDs shows that an id which exists nowhere is 404, of whatever form.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ids := []string{
		"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA", "x", "%2e%2e", "a%2Fb", "%00", "%ff", "%27%20OR%201=1",
		strings.Repeat("a", 3000),
	}
	for name, r := range routes() {
		mine := s.tenant("enterprise") // one tenant may not have a device for each operation
		target, body := r.build(mine)
		parts := strings.Split(target, "/")
		place := 3
		if parts[2] == "sandbox" {
			place = 4
		}
		if len(parts) <= place {
			continue
		}
		for _, id := range ids {
			parts[place] = id
			a := mine.do(r.method, strings.Join(parts, "/"), body)
			a.what = name + " " + a.what
			a.want(http.StatusNotFound, postern.NotFound)
		}
	}
	mine := s.tenant("enterprise")
	device := connected(mine)
	for _, id := range []string{"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA", "x", strings.Repeat("a", 3000)} {
		mine.do("POST", "/v1/messages", `{"deviceId":"`+id+`","to":"+15551234567","body":"x"}`).want(http.StatusNotFound, postern.NotFound)
		mine.do("POST", "/v1/sandbox/devices/"+device+"/receipts",
			`{"messageId":"`+id+`","status":"read"}`).want(http.StatusNotFound,
			postern.NotFound)
		mine.do("GET", "/v1/messages?deviceId="+id, "").want(http.StatusNotFound, postern.NotFound)
	}
}
