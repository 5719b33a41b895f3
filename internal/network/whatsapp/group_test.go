package whatsapp

import (
	"errors"
	"fmt"
	"testing"

	"postern/internal/network"
	"postern/internal/postern"
	"postern/vendorsim"
)

// A group is created, joined by more people and written to with fewer queries of keys than it has members.
func TestMembersAreNotReadOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.settled(t)
	people := make([]string, 200)
	for i := range people {
		people[i] = fmt.Sprintf("+1556000%04d", i)
	}
	cheap := func(what string, do func() error) {
		before := w.reads.Load()
		if err := do(); err != nil {
			t.Fatalf("%s: %v: %v", what, err, errors.Unwrap(err))
		}
		n := w.reads.Load() - before
		if t.Logf("%s: %d queries", what, n); n >= 100 {
			t.Errorf("%s takes %d queries of keys", what, n)
		}
	}
	var chat string
	cheap("creating a group of 101", func() error {
		g, _, err := c.Groups().Create(t.Context(), network.NewGroup{Subject: "All", Participants: people[:100]})
		chat = g.ChatID
		return err
	})
	cheap("adding 100", func() error {
		_, err := c.Groups().ChangeParticipants(t.Context(), chat, "add", people[100:], false)
		return err
	})
	for i := range 2 {
		cheap(fmt.Sprint("sending text ", i), func() error {
			_, err := c.Send(t.Context(), outbound(fmt.Sprintf("3EB000000000000000C%d", i), chat, "Hello"))
			return err
		})
	}
}

// A text is encrypted for those who are members when it is sent, also before the notice of a change arrives.
func TestTextAfterAChangeIsForTheMembersOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.settled(t)
	g, _, err := c.Groups().Create(t.Context(), network.NewGroup{
		Subject: "All", Participants: []string{"+15560000001", "+15560000002"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultUntold); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		action postern.ParticipantAction
		who    string
	}{{"", ""}, {postern.AddParticipants, "+15560000003"}, {postern.RemoveParticipants, "+15560000001"}} {
		if step.who != "" {
			who := []string{step.who}
			if _, err := c.Groups().ChangeParticipants(t.Context(), g.ChatID, step.action, who, false); err != nil {
				t.Fatal(err)
			}
		}
		text := outbound(fmt.Sprintf("3EB000000000000000D%d", i), g.ChatID, "Hello")
		if _, err := c.Send(t.Context(), text); err != nil {
			t.Fatalf("text %d: %v", i, err)
		}
	}
	list := w.vendor.Ledger(0, 0)
	if len(list) != 3 {
		t.Fatalf("%d texts arrived, want 3", len(list))
	}
	for _, e := range list {
		if e.Copies != 1 || len(e.Missing) > 0 || len(e.Strangers) > 0 {
			t.Errorf("%s arrived %d times; %v could not decrypt it, and it was encrypted for %v",
				e.NetworkID, e.Copies, e.Missing, e.Strangers)
		}
	}
}
