package vendorsim_test

import (
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

const (
	ann = "+15550000011"
	ben = "+15550000012"
)

func newGroup(t *testing.T, v *vendorsim.Vendor, members ...string) (vendorsim.Group, types.JID) {
	t.Helper()
	g, err := v.CreateGroup("Support", members...)
	if err != nil {
		t.Fatal(err)
	}
	return g, types.NewJID(g.ID, types.GroupServer)
}

func writeIn(t *testing.T, v *vendorsim.Vendor, g vendorsim.Group, from string, c vendorsim.Content) string {
	t.Helper()
	id, err := v.WriteInGroup(t.Context(), g.ID, from, c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The key of a phone is handed out once, so the second text has only the copy that is the same for all.
func TestMembersPhonesWriteToAGroup(t *testing.T) {
	v := openVendor(t, "")
	c := link(t, v, alice)
	g, group := newGroup(t, v, ann, alice, ben)
	for _, body := range []string{"one", "two"} {
		writeIn(t, v, g, ann, vendorsim.Content{Type: vendorsim.TypeText, Body: body})
		m := c.message(body)
		if m.Info.Chat != group || !m.Info.IsGroup || m.Info.IsFromMe || m.Info.SenderAlt != jid(ann) ||
			m.Info.Sender.Server != types.HiddenUserServer {
			t.Errorf("%q comes from %+v", body, m.Info.MessageSource)
		}
	}
	writeIn(t, v, g, alice, vendorsim.Content{Type: vendorsim.TypeText, Body: "mine"})
	if m := c.message("mine"); !m.Info.IsFromMe || m.Info.Chat != group {
		t.Errorf("the account's own text comes from %+v", m.Info.MessageSource)
	}
	for _, member := range []string{ann, ben, alice} {
		if shown := v.Shown(member); len(shown) != 3 || shown[0].Group != g.ID || shown[2].From != alice {
			t.Errorf("the phone of %s shows %+v", member, shown)
		}
	}
	if _, err := v.WriteInGroup(t.Context(), g.ID, "+15550000013", vendorsim.Content{Body: "x"}); err == nil {
		t.Error("somebody else could write in the group")
	}
}

// Each phone decrypts a text, and confirms it.
func TestCompanionWritesToAGroup(t *testing.T) {
	v := openVendor(t, "")
	c := link(t, v, alice)
	other := link(t, v, ben)
	g, group := newGroup(t, v, ann, alice, ben, vendorsim.NumberReader, vendorsim.NumberSilent)
	for _, body := range []string{"one", "two"} {
		resp, err := c.wa.SendMessage(t.Context(), group, textOf(body))
		if err != nil {
			t.Fatal(err)
		}
		if m := other.message(body); m.Info.Chat != group || m.Info.SenderAlt.ToNonAD() != jid(alice) {
			t.Errorf("%q comes from %+v", body, m.Info.MessageSource)
		}
		await(c, "the receipt of a member", func(r *events.Receipt) bool {
			return r.IsGroup && r.Chat == group && r.Sender.Server == types.HiddenUserServer && r.MessageIDs[0] == resp.ID &&
				r.Type == types.ReceiptTypeRead
		})
		for _, member := range []string{ann, ben, alice, vendorsim.NumberSilent} {
			shown := v.Shown(member)
			if last := shown[len(shown)-1]; last.Body != body || last.From != alice || last.Group != g.ID {
				t.Errorf("the phone of %s shows %+v", member, last)
			}
		}
		if e := entry(t, v, resp.ID); e.Group != g.ID || e.Type != vendorsim.TypeText || e.AckedAt == nil {
			t.Errorf("the ledger has %+v", e)
		}
	}
	none := types.NewJID("120300000000000000", types.GroupServer)
	if _, err := c.wa.SendMessage(t.Context(), none, textOf("x")); err == nil {
		t.Error("a text to a group that does not exist was sent")
	}
}

func TestActionsInAGroup(t *testing.T) {
	v := openVendor(t, "")
	c := link(t, v, alice)
	g, group := newGroup(t, v, ann, alice, ben)
	id := writeIn(t, v, g, ann, vendorsim.Content{Type: vendorsim.TypeText, Body: "one"})
	sender := c.message("one").Info.Sender
	if _, err := c.wa.SendMessage(t.Context(), group, c.wa.BuildReaction(group, sender, id, "👍")); err != nil {
		t.Fatal(err)
	}
	if _, err := v.React(t.Context(), alice, ben, id, "🎉"); err != nil {
		t.Fatal(err)
	}
	await(c, "a reaction", func(m *events.Message) bool { return m.Message.GetReactionMessage().GetText() == "🎉" })
	if _, err := v.Edit(t.Context(), alice, ben, id, "not mine"); err == nil {
		t.Error("somebody else could edit a text")
	}
	if got := v.Shown(ben)[0].Reactions; len(got) != 2 {
		t.Errorf("the phone shows the reactions %+v", got)
	}
}

// A companion that is not told of a change writes for the earlier members.
func TestUntoldCompanionWritesForTheEarlierMembers(t *testing.T) {
	v := openVendor(t, "")
	c := link(t, v, alice)
	const cid = "+15550000013"
	g, group := newGroup(t, v, ann, alice, ben)
	write := func() vendorsim.Entry {
		resp, err := c.wa.SendMessage(t.Context(), group, textOf("Hello"))
		if err != nil {
			t.Fatal(err)
		}
		until(t, v, "all members can read it", func() bool { return len(entry(t, v, resp.ID).Missing) == 0 })
		return entry(t, v, resp.ID)
	}
	if e := write(); len(e.Strangers) > 0 {
		t.Errorf("a text for all members is for %v, too", e.Strangers)
	}
	fault(t, v, alice, vendorsim.FaultUntold)
	if err := v.ChangeGroup(g.ID, ann, vendorsim.GroupChange{Remove: []string{ben}, Add: []string{cid}}); err != nil {
		t.Fatal(err)
	}
	if e := write(); e.Copies != 2 || len(e.Strangers) != 1 || e.Strangers[0] != ben {
		t.Errorf("the text has %d copies, and is for %v, too", e.Copies, e.Strangers)
	}
	fault(t, v, alice, vendorsim.FaultUntold+":0")
	if err := v.ChangeGroup(g.ID, ann, vendorsim.GroupChange{Remove: []string{cid}}); err != nil {
		t.Fatal(err)
	}
	await(c, "the notice", func(n *events.GroupInfo) bool { return len(n.Leave) == 1 })
}

// A client that cannot decrypt a text asks the member's phone for another copy, and a phone asks the client.
func TestCopiesInAGroupAreMadeAgain(t *testing.T) {
	v := openVendor(t, "")
	c := link(t, v, alice)
	g, group := newGroup(t, v, ann, alice, ben)
	for _, body := range []string{"one", "two", "three"} {
		fault(t, v, alice, vendorsim.FaultGarble)
		writeIn(t, v, g, ann, vendorsim.Content{Type: vendorsim.TypeText, Body: body})
		c.message(body)
	}
	fault(t, v, alice, vendorsim.FaultRetry)
	if _, err := c.wa.SendMessage(t.Context(), group, textOf("four")); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{ann, ben} {
		until(t, v, "the phone shows the text", func() bool {
			shown := v.Shown(member)
			return shown[len(shown)-1].Body == "four"
		})
	}
}

// Groups, their keys and what phones show of them survive a restart of the vendor.
func TestGroupsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	v := openVendor(t, dir)
	g, _ := newGroup(t, v, ann, ben)
	writeIn(t, v, g, ann, vendorsim.Content{Type: vendorsim.TypeText, Body: "one"})
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = openVendor(t, dir)
	if list := v.Groups(ben); len(list) != 1 || list[0].Subject != "Support" || list[0].Admins[0] != ann {
		t.Errorf("the groups are %+v", list)
	}
	if shown := v.Shown(ben); len(shown) != 1 || shown[0].Group != g.ID {
		t.Errorf("the phone shows %+v", shown)
	}
	writeIn(t, v, g, ann, vendorsim.Content{Type: vendorsim.TypeText, Body: "two"})
}
