package testkit_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// blocked returns whom the account of a device has blocked.
func blocked(c *testkit.Client, d postern.Device) []postern.BlockedContact {
	var list struct{ Data []postern.BlockedContact }
	c.Call("GET", path(d, "/blocked"), nil, 200, &list)
	return list.Data
}

// An account blocks and unblocks people, here and on the phone. What they write meanwhile does not arrive.
func TestPeopleAreBlocked(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		hooks := b.c.Receive("message.received")
		writes := func(from, body string) {
			t.Helper()
			if _, err := k.Vendor.Send(t.Context(), phone, from, body); err != nil {
				t.Fatal(err)
			}
		}
		if list := blocked(b.c, b.d); list == nil || len(list) != 0 {
			t.Errorf("at first, %v are blocked", list)
		}
		writes(ann, "before")
		hooks.AwaitCount(postern.MessageReceived, 1)
		to := path(b.d, "/blocked/"+url.PathEscape(ann))
		for range 2 {
			b.c.Call("PUT", to, nil, 204, nil)
		}
		list := blocked(b.c, b.d)
		if len(list) != 1 || list[0].ChatID != ann || list[0].LID == "" || list[0].ContactID == "" || list[0].Name == "" {
			t.Fatalf("blocked are %+v", list)
		}
		writes(ann, "meanwhile")
		writes(customer, "somebody else")
		for range 2 {
			b.c.Call("DELETE", path(b.d, "/blocked/"+url.PathEscape(string(list[0].LID))), nil, 204, nil)
		}
		writes(ann, "after")
		var got []string
		for _, e := range hooks.AwaitCount(postern.MessageReceived, 3) {
			got = append(got, members(t, e, "message")["body"].(string))
		}
		if slices.Sort(got); !slices.Equal(got, []string{"after", "before", "somebody else"}) {
			t.Errorf("received %v", got)
		}

		if err := k.Vendor.BlockLists().Set(phone, customer, true); err != nil {
			t.Fatal(err)
		}
		if list := blocked(b.c, b.d); len(list) != 1 || list[0].ChatID != customer {
			t.Errorf("after a block on the phone, %+v are blocked", list)
		}
		k.Stop()
		k.Boot()
		b.c.Await(b.d.ID, postern.Connected)
		b.c.Call("DELETE", path(b.d, "/blocked/"+url.PathEscape(customer)), nil, 204, nil)
		if list, err := k.Vendor.BlockLists().Of(phone); err != nil || len(list) != 0 {
			t.Errorf("on the phone, %v are blocked, %v", list, err)
		}
	})
}

// A number that nobody knows is looked up. Who is not on the network, a group, and the account itself cannot be blocked,
// and a key needs the scope and a connected device.
func TestWhoCannotBeBlocked(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		put := func(c *testkit.Client, who string) int {
			return c.Do("PUT", path(b.d, "/blocked/"+url.PathEscape(who)), nil).Status
		}
		if got := put(b.c, ann); got != http.StatusNoContent {
			t.Errorf("a number that nobody knows: %d", got)
		}
		if list := blocked(b.c, b.d); len(list) != 1 || list[0].ChatID != ann || list[0].ContactID != "" {
			t.Errorf("blocked are %+v", list)
		}
		for who, want := range map[string]int{
			"+15005550001": 404, "group:120363041234567890": 404, "nobody": 404, "lid:1": 404, phone: 422,
		} {
			if got := put(b.c, who); got != want {
				t.Errorf("blocking %s: %d, want %d", who, got, want)
			}
		}
		reader := k.Key(b.c.Workspace, gateway.NewKey{Name: "reader", Scopes: []postern.Scope{postern.ContactsRead}})
		if got := put(reader, customer); got != http.StatusForbidden {
			t.Errorf("a key that may only read: %d", got)
		}
		b.c.Call("POST", path(b.d, "/pause"), nil, 200, nil)
		if a := b.c.Do("GET", path(b.d, "/blocked"), nil); a.Status != http.StatusConflict {
			t.Errorf("while the device is paused: %d", a.Status)
		}
	})
}
