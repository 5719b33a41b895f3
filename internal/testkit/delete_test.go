package testkit_test

import (
	"errors"
	"slices"
	"testing"

	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/testkit"
)

// TestDeletingADeviceLeavesNothing but ids in the log of events. The unlink is
// answered by the vendor before the request is.
func TestDeletingADeviceLeavesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("device.unlinked")
		d, other := c.Link(phone), c.Link("+15550002222")
		m, kept := send(c, d, reader, "gone soon"), send(c, other, reader, "stays")
		c.AwaitMessage(send(c, d, ann, "to somebody whom the other device does not know").ID, postern.Delivered)
		c.AwaitMessage(m.ID, postern.Read)
		c.AwaitMessage(kept.ID, postern.Read)
		c.Call("DELETE", path(d, ""), nil, 204, nil)
		for _, a := range k.Vendor.Accounts() {
			if a.Number == phone && a.Companions != 0 {
				t.Errorf("after the answer the phone shows %d linked devices", a.Companions)
			}
		}
		for _, more := range []string{"", "/link"} {
			c.Call("GET", path(d, more), nil, 404, nil)
		}
		c.Call("DELETE", path(d, ""), nil, 404, nil)
		testkit.Eventually(t, "the message to go", func() (bool, any) {
			a := c.Do("GET", "/v1/messages/"+string(m.ID), nil)
			return a.Status == 404, string(a.Body)
		})
		wantBodies(t, c, "", "stays")
		unlinked := hooks.Await(postern.DeviceUnlinked)[0]
		if device, _ := unlinked.Event["device"].(map[string]any); device["statusReason"] != "deleted" ||
			unlinked.Event["deviceId"] != string(d.ID) {
			t.Errorf("device.unlinked = %s", unlinked.Body)
		}
		testkit.Eventually(t, "the events to keep ids only", func() (bool, any) {
			var log struct{ Data []map[string]any }
			c.Call("GET", "/v1/events?limit=200", nil, 200, &log)
			n := 0
			for _, e := range log.Data {
				if e["deviceId"] == string(d.ID) {
					n++
					if e["eventId"] == "" || e["message"] != nil || e["device"] != nil {
						return false, e
					}
				}
			}
			return n > 0, log.Data
		})
		testkit.Eventually(t, "the contact of this device alone to go", func() (bool, any) {
			list := contactList(c, "")
			return len(list) == 1 && list[0].PhoneNumber == reader, list
		})
		for _, account := range k.SessionAccounts() {
			if account[:11] == phone[1:] {
				t.Errorf("keys of the deleted device's account are kept")
			}
		}
	})
}

// Keys that a crash has left of an account that no device has are removed after the next start.
func TestKeysOfAnAbandonedAccountAreRemoved(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		kept := k.SessionAccounts()
		db, err := store.Open(t.Context(), store.Options{Dir: k.Config.Dir, URL: string(k.Config.DatabaseURL)})
		if err != nil {
			t.Fatal(err)
		}
		left := store.WriteSessionKeys{Account: "15550009999:7@s.whatsapp.net", Keys: []store.SessionKey{{
			Kind: "identity", Name: "a", Value: []byte("x"),
		}}}
		if err := errors.Join(db.SessionKeys.Write(t.Context(), left), db.Close()); err != nil {
			t.Fatal(err)
		}
		k.Boot()
		c.Await(d.ID, postern.Connected)
		testkit.Eventually(t, "the keys to go", func() (bool, any) {
			got := k.SessionAccounts()
			k.Boot()
			return slices.Equal(got, kept), got
		})
	})
}
