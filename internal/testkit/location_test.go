package testkit_test

import (
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

func TestLocationGoesBothWays(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive()
	d := c.Link(phone)
	gate := postern.Location{
		Latitude: 52.5163, Longitude: -13.3777, Name: "Gate", Address: "Pariser Platz", URL: "https://example.com/",
	}

	var m postern.Message
	send := map[string]any{"deviceId": d.ID, "to": reader, "type": "location", "location": gate}
	c.Call("POST", "/v1/messages", send, 202, &m)
	m = c.AwaitMessage(m.ID, postern.Read)
	if m.Content.Kind != postern.KindLocation || m.Content.Text != "" || *m.Content.Location != gate {
		t.Errorf("sent content = %+v", m.Content)
	}
	shown := k.Vendor.Shown(reader)
	if len(shown) != 1 || shown[0].Type != vendorsim.TypeLocation || *shown[0].Location != vendorsim.Location(gate) {
		t.Errorf("the recipient's phone shows %+v", shown)
	}

	in := map[string]any{"from": customer, "type": "location", "location": gate}
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", in, 200, nil)
	event := hooks.Await(postern.MessageReceived)[0]
	message, _ := event.Event["message"].(map[string]any)
	place, _ := message["location"].(map[string]any)
	if message["type"] != "location" || message["body"] != "" || place["latitude"] != 52.5163 ||
		place["name"] != "Gate" {
		t.Errorf("message.received = %s", event.Body)
	}
	id, _ := message["id"].(string)
	c.Call("GET", "/v1/messages/"+id, nil, 200, &m)
	if m.Content.Kind != postern.KindLocation || *m.Content.Location != gate {
		t.Errorf("received content = %+v", m.Content)
	}
	var seen struct {
		Data []struct{ Location *postern.Location }
	}
	c.Call("GET", "/v1/sandbox/devices/"+string(d.ID)+"/phone", nil, 200, &seen)
	if len(seen.Data) != 2 || seen.Data[1].Location == nil || *seen.Data[1].Location != gate {
		t.Errorf("the own phone shows %+v", seen.Data)
	}
}

func TestLocationIsChecked(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	place := map[string]any{"latitude": 1.5, "longitude": 2}
	for name, content := range map[string]map[string]any{
		"no place":            {"type": "location"},
		"half a place":        {"type": "location", "location": map[string]any{"latitude": 1}},
		"off the earth":       {"type": "location", "location": map[string]any{"latitude": 90.5, "longitude": 0}},
		"a place with a text": {"type": "location", "location": place, "body": "x"},
		"a text with a place": {"type": "text", "location": place, "body": "x"},
		"an unknown member":   {"type": "location", "location": map[string]any{"latitude": 1, "longitude": 2, "x": 1}},
		"a text without text": {"type": "text"},
		"an unsupported kind": {"type": "unsupported", "body": "x"},
		"latitude as a text":  {"type": "location", "location": map[string]any{"latitude": "1", "longitude": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			content["deviceId"], content["to"] = d.ID, reader
			c.Call("POST", "/v1/messages", content, 422, nil)
		})
	}
}
