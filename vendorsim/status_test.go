package vendorsim_test

import (
	"errors"
	"slices"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// saves adds a person to the contacts of a client, by both addresses.
func saves(t *testing.T, c *client, number string) {
	t.Helper()
	if err := c.wa.Store.Contacts.PutContactName(t.Context(), jid(number), "Somebody", "Somebody else"); err != nil {
		t.Fatal(err)
	}
}

// TestStatus posts with a companion: all contacts' phones decrypt the post, and their linked companions get it, under
// one id however often it is sent.
func TestStatus(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a, b := link(t, v, alice), link(t, v, ben)
	saves(t, a, ann)
	saves(t, a, ben)
	resp, err := a.wa.SendMessage(t.Context(), types.StatusBroadcastJID, textOf("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.wa.SendMessage(
		t.Context(), types.StatusBroadcastJID, textOf("hello"), whatsmeow.SendRequestExtra{ID: resp.ID}); err != nil {
		t.Fatal(err)
	}
	if m := b.message("hello"); m.Info.Chat != types.StatusBroadcastJID || m.Info.SenderAlt.ToNonAD() != jid(alice) {
		t.Errorf("the post comes from %+v", m.Info.MessageSource)
	}
	for _, num := range []string{ann, ben, alice} {
		if shown := v.Shown(num); len(shown) != 1 || shown[0].Body != "hello" || shown[0].Group != vendorsim.StatusID ||
			(len(shown[0].Viewers) > 0) != (num == alice) {
			t.Errorf("the phone of %s shows %+v", num, shown)
		}
	}
	if e := entry(t, v, resp.ID); e.Copies != 2 || e.Group != vendorsim.StatusID || e.AckedAt == nil {
		t.Errorf("the ledger has %+v", e)
	}
	if err := v.Receipt(t.Context(), alice, resp.ID, vendorsim.Read); err != nil {
		t.Fatal(err)
	}
	await(a, "the receipt of a viewer", func(r *events.Receipt) bool {
		return r.Chat == types.StatusBroadcastJID && r.Type == types.ReceiptTypeRead && r.MessageIDs[0] == resp.ID
	})
	if _, err := a.wa.SendMessage(
		t.Context(), types.StatusBroadcastJID, a.wa.BuildRevoke(types.StatusBroadcastJID, types.EmptyJID, resp.ID),
	); err != nil {
		t.Fatal(err)
	}
	if shown := v.Shown(ann); len(shown) != 1 || !shown[0].Deleted {
		t.Errorf("the phone shows %+v", shown)
	}
}

// The privacy of an account decides which phones get its posts. A client has to read it.
func TestStatusPrivacy(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	saves(t, a, ann)
	saves(t, a, ben)
	for _, one := range []struct {
		who     vendorsim.StatusPrivacy
		list    []string
		viewers []string
	}{
		{"", nil, []string{ann, ben}},
		{vendorsim.StatusExcept, []string{ann}, []string{ben}},
		{vendorsim.StatusOnly, []string{ann, bob}, []string{ann, bob}},
		{vendorsim.StatusContacts, nil, []string{ann, ben}},
	} {
		if err := v.Status().SetPrivacy(alice, one.who, one.list...); err != nil {
			t.Fatal(err)
		}
		if _, err := a.wa.SendMessage(t.Context(), types.StatusBroadcastJID, textOf("hello")); err != nil {
			t.Fatal(err)
		}
		shown := v.Shown(alice)
		viewers := slices.Sorted(slices.Values(shown[len(shown)-1].Viewers))
		if want := slices.Sorted(slices.Values(one.viewers)); !slices.Equal(viewers, want) {
			t.Errorf("%q %v: the post goes to %v, want %v", one.who, one.list, viewers, want)
		}
	}
}

// Contacts' phones post, and delete what they have posted. A companion that cannot decrypt a post gets another copy.
func TestPhonesPostStatus(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	posts := func(body string) string {
		t.Helper()
		id, err := v.Status().Post(t.Context(), ann, vendorsim.Content{Type: vendorsim.TypeText, Body: body}, alice, ben)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := posts("one")
	if m := c.message("one"); m.Info.Chat != types.StatusBroadcastJID || m.Info.SenderAlt != jid(ann) || m.Info.IsFromMe {
		t.Errorf("the post comes from %+v", m.Info.MessageSource)
	}
	if err := v.Fault(t.Context(), alice, vendorsim.FaultGarble); err != nil {
		t.Fatal(err)
	}
	posts("two")
	if m := c.message("two"); m.Info.Chat != types.StatusBroadcastJID {
		t.Errorf("the second copy comes from %+v", m.Info.MessageSource)
	}
	if _, err := v.Revoke(t.Context(), alice, ann, first); err != nil {
		t.Fatal(err)
	}
	await(c, "that the post was deleted", func(m *events.Message) bool {
		return m.Info.Chat == types.StatusBroadcastJID && m.Message.GetProtocolMessage().GetKey().GetID() == first
	})
	if shown := v.Shown(ben); len(shown) != 2 || !shown[0].Deleted || shown[1].Body != "two" {
		t.Errorf("the phone shows %+v", shown)
	}
	if _, err := v.Revoke(t.Context(), alice, ben, first); !errors.Is(err, vendorsim.ErrNotAuthor) {
		t.Errorf("somebody else deletes the post: %v", err)
	}
	if _, err := v.Status().Post(t.Context(), ann, vendorsim.Content{Body: "x"}, vendorsim.NumberUnknown); err == nil {
		t.Error("a number that is not on the network sees a post")
	}
}
