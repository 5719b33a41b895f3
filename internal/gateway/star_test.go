package gateway

import (
	"testing"

	"postern/internal/postern"
)

// A driver may report the change of a star again, and those of messages that the gateway does not
// have, of which nothing is kept.
func TestStarsAreRecordedOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		c := operatorIn(t, g)
		const chat = "+15551234567"
		d := postern.Device{ID: newDevice(t, g, c), WorkspaceID: c.Workspace(), PhoneNumber: "+15550001111"}
		m := postern.Message{
			WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound, ChatID: chat, From: chat,
			Content: postern.Text("hello"), Status: postern.Received, NetworkID: "N1", Source: postern.FromContact,
		}
		if err := g.Sessions.Receive(t.Context(), m, "lid:1", postern.MessageReceived, ArrivedFile{}); err != nil {
			t.Fatal(err)
		}
		star := func(about string, on bool, at postern.Time) {
			t.Helper()
			if err := g.Sessions.Starred(t.Context(), d, chat, about, on, at); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			star("N1", true, 1000)
			star("N1", false, 2000)
			star("N1", true, 3000)
			star("N2", true, 1000)
		}
		for about, want := range map[string]int{"N1": 3, "N2": 0} {
			p, err := g.db.Messages.Progress(t.Context(), stored(t, g, d, chat, "N1", about))
			if err != nil || len(p.Actions) != want {
				t.Errorf("%d changes of %s are recorded, want %d: %v", len(p.Actions), about, want, err)
			}
		}
		if m := stored(t, g, d, chat, "N1", "N1"); m.State.StarredAt != 3000 {
			t.Errorf("the message is starred at %d, want 3000", m.State.StarredAt)
		}
	})
}

// stored returns a message, under another network id.
func stored(t *testing.T, g *Gateway, d postern.Device, chat, id, as string) postern.Message {
	t.Helper()
	m, ok, err := g.db.Messages.InChat(t.Context(), d.ID, chat, id)
	if err != nil || !ok {
		t.Fatalf("message %s: %v, %v", id, ok, err)
	}
	m.NetworkID = as
	return m
}
