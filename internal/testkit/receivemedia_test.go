package testkit_test

import (
	"encoding/json"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// inboundFile lets a contact send a file, and returns it as the event of the message shows it.
func inboundFile(t *testing.T, c *testkit.Client, d postern.Device, hooks *testkit.Receiver, n int) postern.Media {
	t.Helper()
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{
		"from": customer, "type": "document",
		"media": map[string]any{"data": []byte("Order 17"), "mimeType": "text/plain", "filename": "order.txt"},
	}, 200, nil)
	return mediaOf(t, hooks.AwaitCount(postern.MessageReceived, n)[n-1])
}

// mediaOf returns the file of the message of an event.
func mediaOf(t *testing.T, d testkit.Delivery) postern.Media {
	t.Helper()
	var e struct{ Message struct{ Media postern.Media } }
	if err := json.Unmarshal(d.Body, &e); err != nil {
		t.Fatal(err)
	}
	return e.Message.Media
}

func setMedia(t *testing.T, c *testkit.Client, d postern.Device, mode postern.MediaMode) {
	t.Helper()
	var after postern.Device
	c.Call("PATCH", path(d, ""), map[string]any{"receive": map[string]any{"media": mode}}, 200, &after)
	if after.Receive.Media != mode {
		t.Errorf("the device fetches files %s, want %s", after.Receive.Media, mode)
	}
}

func TestFilesAreFetchedWhenTheOwnerWants(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive(string(postern.MessageReceived), string(postern.MediaReadyEv))
		d := c.Link(phone)
		ready := func(n int, want postern.MediaID) {
			t.Helper()
			if got := mediaOf(t, hooks.AwaitCount(postern.MediaReadyEv, n)[n-1]).ID; got != want {
				t.Errorf("file %d that is ready is %s, want %s", n, got, want)
			}
		}
		setMedia(t, c, d, postern.MediaLazy)
		lazy := inboundFile(t, c, d, hooks, 1)
		setMedia(t, c, d, postern.MediaOff)
		none := inboundFile(t, c, d, hooks, 2)
		setMedia(t, c, d, postern.MediaEager)
		eager := inboundFile(t, c, d, hooks, 3)
		ready(1, eager.ID)
		if lazy.Status != postern.MediaPending || none.Status != postern.MediaExpired {
			t.Errorf("files arrive %s and %s, want pending and expired", lazy.Status, none.Status)
		}
		for _, id := range []postern.MediaID{none.ID, lazy.ID} {
			c.Call("GET", "/v1/media/"+string(id), nil, 200, nil)
		}
		ready(2, lazy.ID)
		if got := c.Download(lazy.ID); string(got) != "Order 17" {
			t.Errorf("the file is %q", got)
		}
		var m postern.Media
		c.Call("GET", "/v1/media/"+string(none.ID), nil, 200, &m)
		if m.Status != postern.MediaExpired {
			t.Errorf("the file that was not wanted is %s", m.Status)
		}
	})
}

func TestDeviceCountsWhatWaits(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d, idle := c.Link(phone), create(c)
		queued := func(want int) {
			t.Helper()
			var one postern.Device
			c.Call("GET", path(d, ""), nil, 200, &one)
			var list struct{ Data []postern.Device }
			c.Call("GET", "/v1/devices", nil, 200, &list)
			counts := map[postern.DeviceID]int{}
			for _, d := range list.Data {
				counts[d.ID] = *d.Queued
			}
			if *one.Queued != want || counts[d.ID] != want || counts[idle.ID] != 0 {
				t.Errorf("queued: %d, in the list %v, want %d", *one.Queued, counts, want)
			}
		}
		queued(0)
		c.Call("POST", path(d, "/pause"), nil, 200, nil)
		var last postern.Message
		for range 3 {
			c.Call("POST", "/v1/messages", map[string]any{
				"deviceId": d.ID, "to": reader, "body": "Hello", "whenDisconnected": "queue",
			}, 202, &last)
		}
		queued(3)
		c.Call("POST", path(d, "/resume"), nil, 200, nil)
		c.AwaitMessage(last.ID, postern.Read)
		queued(0)
	})
}

// A file of a group that the network no longer has is asked for from the phone, by its author.
func TestFileOfAGroupIsUploadedAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive(string(postern.MessageReceived), string(postern.MediaReadyEv))
		d := linked(t, k, c)
		setMedia(t, c, d, postern.MediaLazy)
		var list struct{ Data []postern.GroupSummary }
		c.Call("GET", path(d, "/groups"), nil, 200, &list)
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{
			"from": ann, "group": list.Data[0].ChatID, "type": "document",
			"media": map[string]any{"data": []byte("Order 17"), "mimeType": "text/plain", "filename": "order.txt"},
		}, 200, nil)
		file := mediaOf(t, hooks.AwaitCount(postern.MessageReceived, 1)[0])
		if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultMediaExpired); err != nil {
			t.Fatal(err)
		}
		c.Call("GET", "/v1/media/"+string(file.ID), nil, 200, nil)
		hooks.Await(postern.MediaReadyEv)
		if got := c.Download(file.ID); string(got) != "Order 17" {
			t.Errorf("the file is %q", got)
		}
	})
}
