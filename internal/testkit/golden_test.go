package testkit_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waE2E" //nolint:depguard // what a phone writes
	"google.golang.org/protobuf/proto"
)

// goldenKinds are messages of each kind that can be sent, with most of its members.
func goldenKinds(t *testing.T) map[string]fileCase {
	t.Helper()
	photo := picture(t, asJPEG)
	return map[string]fileCase{
		"text": {members: map[string]any{
			"body": "@15557654321, <hello> & 👋", "mentions": []any{"+15557654321"}, "forwarded": true,
		}},
		"location": {members: map[string]any{"location": map[string]any{
			"latitude": 52.5163, "longitude": 13.3777, "name": "Gate", "address": "Pariser Platz", "url": "https://example.com/",
		}}},
		"contact": {members: map[string]any{"contacts": []any{
			map[string]any{"name": "Ada", "phoneNumbers": []any{"+15557654321"}, "organization": "Engines"},
			map[string]any{"name": "Bob", "phoneNumbers": []any{"+15557654322", "+15557654323"}},
		}}},
		"poll": {members: map[string]any{"poll": map[string]any{
			"question": "Where?", "options": []any{"Here", "There"}, "maxSelections": 1,
		}}},
		"image":    {members: map[string]any{"body": "look"}, filename: "a.jpg", content: photo},
		"video":    {members: map[string]any{"body": "look", "gif": true}, filename: "a.mp4", content: movie(t)},
		"audio":    {members: map[string]any{}, filename: "a.ogg", content: sample(t, "stereo.ogg")},
		"voice":    {members: map[string]any{}, filename: "a.ogg", content: sample(t, "voice.ogg")},
		"document": {members: map[string]any{"body": "our offer"}, filename: "offer.txt", content: []byte("17 apples\n")},
		"sticker":  {members: map[string]any{}, filename: "a.png", content: picture(t, png.Encode)},
	}
}

// movie is a second of video with sound.
func movie(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/video.mp4")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// receivedKinds are messages of kinds that can only be received.
func receivedKinds() map[string]*waE2E.Message {
	starts := time.Now().Add(time.Hour).Unix()
	return map[string]*waE2E.Message{
		"liveLocation": {LiveLocationMessage: &waE2E.LiveLocationMessage{
			DegreesLatitude: new(52.5), DegreesLongitude: new(13.25), AccuracyInMeters: new(uint32(20)), Caption: new("here"),
		}},
		"event": {EventMessage: &waE2E.EventMessage{
			Name: new("Party"), Description: new("Bring a friend."), StartTime: &starts,
			Location: &waE2E.LocationMessage{Name: new("Gate")},
		}},
		"unsupported": {ProductMessage: &waE2E.ProductMessage{Body: new("Apples")}},
	}
}

// TestEachKindHasAGoldenFile sends and receives each kind, and compares the responses and the
// events with the golden file of the kind. With -update it writes the files.
func TestEachKindHasAGoldenFile(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		g := golden{k: k, c: k.Workspace("enterprise")}
		g.hooks, g.d = g.c.Receive("message.received", "message.read", "media.ready"), g.c.Link(phone)
		for kind, tt := range goldenKinds(t) {
			t.Run(kind, func(t *testing.T) {
				tt.members["type"] = kind
				if tt.content != nil {
					tt.members["media"] = map[string]any{"id": uploadFile(t, g.c, tt.filename, tt.content).ID}
				}
				got := g.sends(t, tt.members)
				for name, text := range g.receives(t, tt.members) {
					got[name] = text
				}
				compareGolden(t, kind, got)
			})
		}
		for kind, msg := range receivedKinds() {
			t.Run(kind, func(t *testing.T) { compareGolden(t, kind, g.receivesRaw(t, msg)) })
		}
	})
}

// golden is a device whose messages are compared with golden files.
type golden struct {
	k     *testkit.Kit
	c     *testkit.Client
	d     postern.Device
	hooks *testkit.Receiver

	sent, received, files int // so far
}

// sends sends a message, and returns the response, the message once it is read, and the event
// that says so.
func (g *golden) sends(t *testing.T, members map[string]any) map[string]string {
	t.Helper()
	members["deviceId"], members["to"] = g.d.ID, reader
	defer func() { delete(members, "deviceId"); delete(members, "to") }()
	a := g.c.Do("POST", "/v1/messages", members)
	var m postern.Message
	a.JSON(g.k, &m)
	if a.Status != 202 {
		t.Fatalf("the response is %d %s", a.Status, a.Body)
	}
	g.c.AwaitMessage(m.ID, postern.Read)
	g.sent++
	g.hooks.AwaitCount(postern.MessageRead, g.sent)
	return map[string]string{
		"response":     string(a.Body),
		"message":      string(g.c.Do("GET", "/v1/messages/"+string(m.ID), nil).Body),
		"message.read": string(g.hooks.Await(postern.MessageRead)[g.sent-1].Body),
	}
}

// receives lets a contact send a message, and returns the events.
func (g *golden) receives(t *testing.T, members map[string]any) map[string]string {
	t.Helper()
	members["from"] = customer
	g.c.Call("POST", "/v1/sandbox/devices/"+string(g.d.ID)+"/inbound", members, 200, nil)
	got := map[string]string{"message.received": g.arrived()}
	if members["media"] != nil {
		g.files++
		got["media.ready"] = string(g.hooks.AwaitCount(postern.MediaReadyEv, g.files)[g.files-1].Body)
	}
	return got
}

// receivesRaw lets a contact's phone write msg, and returns the event.
func (g *golden) receivesRaw(t *testing.T, msg *waE2E.Message) map[string]string {
	t.Helper()
	raw, err := proto.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.k.Vendor.SendContent(t.Context(), phone, customer, vendorsim.Content{Raw: raw}); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"message.received": g.arrived()}
}

// arrived returns the next message.received.
func (g *golden) arrived() string {
	g.received++
	return string(g.hooks.AwaitCount(postern.MessageReceived, g.received)[g.received-1].Body)
}

// compareGolden compares JSON texts with the golden file of a kind.
func compareGolden(t *testing.T, kind string, texts map[string]string) {
	t.Helper()
	list := map[string]json.RawMessage{}
	for name, text := range texts {
		list[name] = json.RawMessage(testkit.Example(text))
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(list); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "kinds", kind+".json")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, got.Bytes()) {
		t.Errorf("the texts are not those of %s (%v); rewrite it with -update\n got %s\nwant %s", file, err, got.Bytes(), want)
	}
}
