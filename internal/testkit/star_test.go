package testkit_test

import (
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// star stars a message on the account's phone, or takes the star away.
func (a acting) star(networkID string, starred bool) {
	a.t.Helper()
	if err := a.kit.Vendor.Star(a.t.Context(), phone, networkID, starred); err != nil {
		a.t.Fatal(err)
	}
}

// starred checks the n-th event of a type, about a message whose star has changed, the message, and
// what the account's phone shows.
func (a acting) starred(kind postern.EventType, n int, m postern.Message) {
	a.t.Helper()
	on := kind == postern.MessageStarred
	if e := a.event(kind, n); e["id"] != string(m.ID) || (e["starredAt"] != nil) != on {
		a.t.Errorf("%s = %v", kind, e)
	}
	a.c.Call("GET", "/v1/messages/"+string(m.ID), nil, 200, &m)
	if (m.State.StarredAt != 0) != on {
		a.t.Errorf("after %s, the message is starred at %v", kind, m.State.StarredAt)
	}
	if shown, err := a.kit.Vendor.ShownMessage(phone, m.NetworkID); err != nil || shown.Starred != on {
		a.t.Errorf("after %s, the phone shows %+v, %v", kind, shown, err)
	}
}

// received returns the n-th message that arrived.
func (a acting) received(n int) (m postern.Message) {
	a.t.Helper()
	id, _ := a.event(postern.MessageReceived, n)["id"].(string)
	a.c.Call("GET", "/v1/messages/"+id, nil, 200, &m)
	return m
}

// Messages of both ends are starred here and on the phone. Nobody else sees it.
func TestStarsGoBothWays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		mine := send(a.c, a.d, reader, "We meet at nine.")
		a.c.AwaitMessage(mine.ID, postern.Read)
		if _, err := k.Vendor.Send(t.Context(), phone, reader, "At ten, please."); err != nil {
			t.Fatal(err)
		}
		theirs := a.received(1)

		a.act("PUT", string(mine.ID), "/star", nil)
		a.starred(postern.MessageStarred, 1, mine)
		a.act("PUT", string(theirs.ID), "/star", map[string]any{})
		a.starred(postern.MessageStarred, 2, theirs)
		a.star(mine.NetworkID, false)
		a.starred(postern.MessageUnstarred, 1, mine)
		a.star(theirs.NetworkID, false)
		a.starred(postern.MessageUnstarred, 2, theirs)
		a.star(mine.NetworkID, true)
		a.starred(postern.MessageStarred, 3, mine)
		a.act("DELETE", string(mine.ID), "/star", nil)
		a.starred(postern.MessageUnstarred, 3, mine)
		if shown, err := k.Vendor.ShownMessage(reader, mine.NetworkID); err != nil || shown.Starred {
			t.Errorf("the contact's phone shows %+v, %v", shown, err)
		}
		var list struct{ Data []postern.Message }
		if a.c.Call("GET", "/v1/messages", nil, 200, &list); len(list.Data) != 2 {
			t.Errorf("%d messages are listed, want 2: a star is not a message", len(list.Data))
		}
	})
}

// What is starred on the phone while the gateway is down is known after its start, once. The keys and
// versions of the app state outlive the start.
func TestStarsSurviveARestart(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		one, two := send(a.c, a.d, reader, "one"), send(a.c, a.d, reader, "two")
		a.c.AwaitMessage(two.ID, postern.Read)
		a.act("PUT", string(one.ID), "/star", nil)
		a.starred(postern.MessageStarred, 1, one)
		k.Stop()
		a.star(one.NetworkID, false)
		a.star(two.NetworkID, true)
		k.Boot()
		a.starred(postern.MessageUnstarred, 1, one)
		a.starred(postern.MessageStarred, 2, two)
		a.act("DELETE", string(two.ID), "/star", nil)
		a.starred(postern.MessageUnstarred, 2, two)
		for _, m := range []postern.Message{one, two} {
			if got := stars(t, a.c, m.ID); len(got) != 2 {
				t.Errorf("the timeline shows the stars %q, want two", got)
			}
		}
	})
}

// stars are the entries about stars in the timeline of a message.
func stars(t *testing.T, c *testkit.Client, id postern.MessageID) (list []string) {
	t.Helper()
	for _, e := range timeline(t, c, id) {
		if e == "action star "+phone+"  sent" || e == "action unstar "+phone+"  sent" {
			list = append(list, e)
		}
	}
	return list
}

// A star is sent as soon as the connection allows it, in its turn, and others may come between.
func TestStarsWaitForTheConnection(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	a := newActing(t, k)
	m := send(a.c, a.d, reader, "hello")
	a.c.AwaitMessage(m.ID, postern.Read)
	a.c.Call("POST", path(a.d, "/pause"), nil, 200, nil)
	a.act("PUT", string(m.ID), "/star", nil)
	a.act("DELETE", string(m.ID), "/star", nil)
	a.act("PUT", string(m.ID), "/star", nil)
	if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultStateConflict); err != nil {
		t.Fatal(err)
	}
	a.c.Call("POST", path(a.d, "/resume"), nil, 200, nil)
	a.event(postern.MessageStarred, 2)
	a.starred(postern.MessageStarred, 2, m)
}

// A message that the gateway does not have can be starred on the phone, and nothing comes of it.
func TestStarsOfUnknownMessagesAreIgnored(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	a := newActing(t, k)
	a.c.Call("PATCH", path(a.d, ""), map[string]any{"receive": map[string]any{"direct": false}}, 200, nil)
	unknown, err := k.Vendor.Send(t.Context(), phone, reader, "You do not want this.")
	if err != nil {
		t.Fatal(err)
	}
	m := send(a.c, a.d, reader, "hello")
	a.c.AwaitMessage(m.ID, postern.Read)
	a.star(unknown, true)
	a.star(m.NetworkID, true)
	a.starred(postern.MessageStarred, 1, m)
	if n := len(a.hooks.Await(postern.MessageStarred)); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

// A damaged patch is not believed. The app state is then read from the beginning, once.
func TestDamagedStarsAreRefused(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	a := newActing(t, k)
	m := send(a.c, a.d, reader, "hello")
	a.c.AwaitMessage(m.ID, postern.Read)
	a.act("PUT", string(m.ID), "/star", nil)
	a.starred(postern.MessageStarred, 1, m)
	if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultStateDamaged); err != nil {
		t.Fatal(err)
	}
	a.star(m.NetworkID, false)
	a.starred(postern.MessageUnstarred, 1, m)
	a.act("PUT", string(m.ID), "/star", nil)
	a.starred(postern.MessageStarred, 2, m)
}
