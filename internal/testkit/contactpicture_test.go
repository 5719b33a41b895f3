package testkit_test

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"net/url"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// The picture of a contact is a file of the device, fetched again only when it has changed, and removed with the person.
func TestPicturesOfContacts(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		b.writes(ann)
		b.called(ann, "")
		id := contactList(b.c, "?chatId="+url.QueryEscape(ann))[0].ID
		at := path(b.d, "/contacts/"+string(id)+"/picture")
		if a := b.c.Do("GET", at, nil); a.Status != http.StatusNotFound {
			t.Errorf("without a picture: %d", a.Status)
		}
		var first, same, other postern.Media
		shows := func(shade uint8) {
			t.Helper()
			b.c.Call("POST", "/v1/sandbox/devices/"+string(b.d.ID)+"/contacts", map[string]any{
				"phoneNumber": ann, "name": "Ann", "picture": map[string]any{"data": encodeTo(t, png.Encode, square(shade)), "mimeType": "image/png"},
			}, 204, nil)
		}
		shows(10)
		b.c.Call("GET", at, nil, 200, &first)
		b.c.Call("GET", at, nil, 200, &same)
		shows(200)
		b.c.Call("GET", at, nil, 200, &other)
		if first.ID != same.ID || first.ID == other.ID || other.MIMEType != "image/jpeg" || other.Status != postern.MediaReady {
			t.Errorf("the files are %+v, %+v, and %+v", first, same, other)
		}
		reader := k.Key(b.c.Workspace, gateway.NewKey{Name: "reader", Scopes: []postern.Scope{postern.ContactsRead}})
		if a := reader.Do("GET", at, nil); a.Status != http.StatusForbidden {
			t.Errorf("a key that may not read files: %d", a.Status)
		}
		stranger := k.Workspace("growth")
		if a := stranger.Do("GET", at, nil); a.Status != http.StatusForbidden {
			t.Errorf("another workspace: %d", a.Status)
		}
		b.c.Call("DELETE", "/v1/contacts/"+string(id), nil, 204, nil)
		var gone postern.Media
		if b.c.Call("GET", "/v1/media/"+string(other.ID), nil, 200, &gone); gone.Status != postern.MediaExpired {
			t.Errorf("the picture of somebody who was erased is %s", gone.Status)
		}
	})
}

// square is a picture of one shade.
func square(shade uint8) image.Image {
	img := image.NewGray(image.Rect(0, 0, 300, 300))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.Gray{Y: shade}), image.Point{}, draw.Src)
	return img
}
