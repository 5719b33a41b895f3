package whatsapp

import (
	"errors"
	"fmt"
	"testing"

	"postern/internal/network"
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
	if _, err := c.Groups().Get(t.Context(), chat); err != nil { // a text sent before is not encrypted for the new members
		t.Fatal(err)
	}
	for i := range 2 {
		cheap(fmt.Sprint("sending text ", i), func() error {
			_, err := c.Send(t.Context(), outbound(fmt.Sprintf("3EB000000000000000C%d", i), chat, "Hello"))
			return err
		})
	}
}
