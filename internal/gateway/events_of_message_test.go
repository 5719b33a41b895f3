package gateway

import (
	"testing"

	"postern/internal/postern"
)

// Of a message with many events, the newest are listed, in their order, and only to its workspace.
func TestEventsOfAMessage(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		c := operatorIn(t, g)
		const chat = "+15551234567"
		d := postern.Device{ID: newDevice(t, g, c), WorkspaceID: c.Workspace(), PhoneNumber: "+15550001111"}
		for _, id := range []string{"N1", "N2"} {
			m := postern.Message{
				WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound, ChatID: chat, From: chat,
				Content: postern.Text("hello"), Status: postern.Received, NetworkID: id, Source: postern.FromContact,
			}
			if err := g.Sessions.Receive(t.Context(), m, "lid:1", postern.MessageReceived, ArrivedFile{}); err != nil {
				t.Fatal(err)
			}
		}
		one, other := stored(t, g, d, chat, "N1", "N1"), stored(t, g, d, chat, "N2", "N2")
		for n := range MostReported {
			if err := g.Sessions.Starred(t.Context(), d, chat, "N1", n%2 == 0, postern.Time(1000*(n+1))); err != nil {
				t.Fatal(err)
			}
		}
		list, err := g.Messages.Events(t.Context(), c, one.ID)
		if err != nil || len(list) != MostReported || list[0].Type == postern.MessageReceived {
			t.Fatalf("%d events are listed: %v, %v", len(list), list, err)
		}
		for i := range list[1:] {
			if list[i].At > list[i+1].At {
				t.Fatalf("event %d is later than the one after it", i)
			}
		}
		list, err = g.Messages.Events(t.Context(), c, other.ID)
		if err != nil || len(list) != 1 || list[0].Type != postern.MessageReceived {
			t.Errorf("the events of the other message are %v, %v", list, err)
		}
		stranger := operatorIn(t, g)
		if _, err := g.Messages.Events(t.Context(), stranger, one.ID); postern.ReasonOf(err) != postern.ResourceNotAllowed {
			t.Errorf("another workspace gets %v", err)
		}
	})
}
