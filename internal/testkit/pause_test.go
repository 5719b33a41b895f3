package testkit_test

import (
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

func path(d postern.Device, more string) string { return "/v1/devices/" + string(d.ID) + more }

func online(k *testkit.Kit, number string) bool {
	for _, a := range k.Vendor.Accounts() {
		if a.Number == number {
			return a.Online
		}
	}
	return false
}

func awaitOffline(t *testing.T, k *testkit.Kit, number string) {
	t.Helper()
	testkit.Eventually(t, "the socket to close", func() (bool, any) { return !online(k, number), nil })
}

func queue(c *testkit.Client, d postern.Device, body string) (m postern.Message) {
	c.Call("POST", "/v1/messages",
		map[string]any{"deviceId": d.ID, "to": reader, "body": body, "whenDisconnected": "queue"}, 202, &m)
	return m
}

func TestAPausedDeviceKeepsItsLinkAndWaits(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("device.*")
	d := c.Link(phone)
	for range 2 { // twice is no error
		c.Call("POST", path(d, "/pause"), nil, 200, &d)
		if d.Status != postern.Paused || d.StatusReason != "user" {
			t.Errorf("paused: %s (%s)", d.Status, d.StatusReason)
		}
	}
	hooks.Await(postern.DevicePaused)
	awaitOffline(t, k, phone)
	a := c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": reader, "body": "x"})
	if a.Status != 409 || !strings.Contains(string(a.Body), `"code":"DEVICE_NOT_CONNECTED"`) ||
		!strings.Contains(string(a.Body), "paused") {
		t.Errorf("a send while paused = %d %s", a.Status, a.Body)
	}
	m := queue(c, d, "later")
	k.Stop()
	k.Boot()
	if _, err := k.Vendor.Send(t.Context(), phone, customer, "while it was paused"); err != nil {
		t.Fatal(err)
	}
	c.Call("GET", path(d, ""), nil, 200, &d)
	if d.Status != postern.Paused || online(k, phone) {
		t.Errorf("after a restart: %s, online %v", d.Status, online(k, phone))
	}
	d = postern.Device{ID: d.ID}
	c.Call("POST", path(d, "/resume"), nil, 200, &d)
	if d.Status != postern.Connecting || d.StatusReason != "" {
		t.Errorf("resumed: %s (%s)", d.Status, d.StatusReason)
	}
	c.Await(d.ID, postern.Connected)
	c.AwaitMessage(m.ID, postern.Read)
	c.Call("POST", path(d, "/resume"), nil, 200, &d)
	if d.Status != postern.Connected {
		t.Errorf("a second resume makes it %s", d.Status)
	}
	testkit.Eventually(t, "what arrived meanwhile", func() (bool, any) {
		var list struct{ Data []postern.Message }
		c.Call("GET", "/v1/messages?direction=inbound", nil, 200, &list)
		return len(list.Data) == 1, list.Data
	})
	paused := 0
	for _, del := range hooks.Await(postern.DeviceLinked, postern.DeviceConnected, postern.DevicePaused,
		postern.DeviceConnected) {
		if del.Type() == postern.DevicePaused {
			paused++
			if device, _ := del.Event["device"].(map[string]any); device["status"] != "paused" ||
				device["statusReason"] != "user" {
				t.Errorf("device.paused = %s", del.Body)
			}
		}
	}
	if paused != 1 {
		t.Errorf("device.paused came %d times, want 1", paused)
	}
}

// TestPauseAndResumeAtOnce shows that two changes that the engine sees as one
// still end in a connected device.
func TestPauseAndResumeAtOnce(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	for range 20 {
		c.Call("POST", path(d, "/pause"), nil, 200, nil)
		c.Call("POST", path(d, "/resume"), nil, 200, nil)
	}
	c.Await(d.ID, postern.Connected)
	m := send(c, d, reader, "still here")
	c.AwaitMessage(m.ID, postern.Read)
}

func TestADeviceWithoutALinkCannotBePaused(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	var d postern.Device
	c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, &d)
	refused := func(what string) {
		t.Helper()
		for _, action := range []string{"/pause", "/resume"} {
			if a := c.Do("POST", path(d, action), nil); a.Status != 409 ||
				!strings.Contains(string(a.Body), "device-not-linked") {
				t.Errorf("%s: %s = %d %s", what, action, a.Status, a.Body)
			}
		}
	}
	refused("never linked")
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	refused("linking")
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/scan", map[string]any{"phoneNumber": phone}, 200, nil)
	c.Await(d.ID, postern.Connected)
	c.Call("POST", path(d, "/pause"), nil, 200, nil)
	c.Call("POST", path(d, "/unlink"), nil, 200, nil) // a paused device can be unlinked
	refused("unlinked")
	awaitNotLinked(t, k, phone)
}
