package testkit_test

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// What is set by the API is what others see of the account; what is changed on the phone is what the API returns.
func TestProfile(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received")
		d := c.Link(phone)
		c.Link(customer)
		at := path(d, "/profile")
		profiles := k.Vendor.PhoneProfiles()
		var p postern.Profile
		c.Call("GET", at, nil, 200, &p)
		if p.About != "" || p.Media != nil {
			t.Errorf("the first profile is %+v", p)
		}

		wide := encodeTo(t, png.Encode, image.NewGray(image.Rect(0, 0, 900, 700)))
		c.Call("PUT", at, map[string]any{
			"name": "Acme", "about": "We answer", "media": map[string]any{"data": wide, "mimeType": "image/png"},
		}, 200, &p)
		if p.Name != "Acme" || p.About != "We answer" || p.Media == nil || p.Media.Width != 640 {
			t.Fatalf("the profile is %+v", p)
		}
		shown, err := profiles.Get(phone)
		if err != nil || shown.Name != "Acme" || shown.About != "We answer" {
			t.Errorf("others see %+v, %v", shown, err)
		}
		if a := c.Do("GET", "/v1/media/"+string(p.Media.ID)+"/content", nil); !bytes.Equal(a.Body, shown.Picture) {
			t.Errorf("the file has %d bytes: %d", len(a.Body), a.Status)
		}
		send(c, d, customer, "Hello")
		if name := members(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], "message")["fromName"]; name != "Acme" {
			t.Errorf("the recipient sees %v", name)
		}
		if name := c.Device(d.ID).DisplayName; name != "Acme" {
			t.Errorf("the device is %q", name)
		}

		first := p.Media.ID
		if err := profiles.Rename(t.Context(), phone, "Acme at home"); err != nil {
			t.Fatal(err)
		}
		if err := profiles.SetAbout(phone, "On the road"); err != nil {
			t.Fatal(err)
		}
		c.Call("GET", at, nil, 200, &p)
		if p.Name != "Acme at home" || p.About != "On the road" || p.Media.ID != first {
			t.Errorf("after changes on the phone, the profile is %+v", p)
		}
		if err := profiles.SetPicture(phone, encodeTo(t, asJPEG, image.NewGray(image.Rect(0, 0, 96, 96)))); err != nil {
			t.Fatal(err)
		}
		c.Call("GET", at, nil, 200, &p)
		if p.Media.ID == first || p.Media.Width != 96 {
			t.Errorf("the new picture is %+v", p.Media)
		}
		k.Stop()
		k.Boot()
		if d := c.Await(d.ID, postern.Connected); d.DisplayName != "Acme at home" {
			t.Errorf("after a restart the device is %q", d.DisplayName)
		}
		var last postern.Profile
		c.Call("PUT", at, map[string]any{"about": "", "media": nil}, 200, &last)
		if last.Name != "Acme at home" || last.About != "" || last.Media != nil {
			t.Errorf("the last profile is %+v", last)
		}
		if shown, _ := profiles.Get(phone); shown.Picture != nil || shown.About != "" {
			t.Errorf("others see %+v", shown)
		}
	})
}

// Profiles that the network would not take are refused, and so is a device without a connection.
func TestProfileRefusals(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		at := path(d, "/profile")
		for _, bad := range []struct {
			pointer string
			body    map[string]any
		}{
			{"/name", map[string]any{"name": ""}}, {"/name", map[string]any{"name": strings.Repeat("x", 26)}},
			{"/name", map[string]any{"name": "  "}}, {"/name", map[string]any{"name": "two\nlines"}},
			{"/about", map[string]any{"about": strings.Repeat("é", 140)}},
			{"/media", map[string]any{"media": map[string]any{}}},
			{"/media/id", map[string]any{"media": map[string]any{"id": "med_01JD8Z3NDEKTSV4RRFFQ69G5FA"}}},
			{"/media", map[string]any{"media": map[string]any{"data": []byte("text"), "mimeType": "image/png"}}},
		} {
			a := c.Do("PUT", at, bad.body)
			if a.Status != 422 || !strings.Contains(string(a.Body), `"pointer":"`+bad.pointer) {
				t.Errorf("%v: %d %s", bad.body, a.Status, a.Body)
			}
		}
		c.Call("PUT", at, map[string]any{"about": strings.Repeat("é", 139)}, 200, nil)
		c.Call("POST", path(d, "/pause"), nil, 200, nil)
		for _, method := range []string{"GET", "PUT"} {
			if a := c.Do(method, at, body(method)); a.Status != 409 || !strings.Contains(string(a.Body), "DEVICE_NOT_CONNECTED") {
				t.Errorf("%s while paused: %d %s", method, a.Status, a.Body)
			}
		}
	})
}

func body(method string) any {
	if method == "GET" {
		return nil
	}
	return map[string]any{"name": "Acme"}
}
