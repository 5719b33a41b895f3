package testkit_test

import (
	"fmt"
	"slices"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"

	"go.mau.fi/whatsmeow/proto/waCommon" //nolint:depguard // what a phone writes
	"go.mau.fi/whatsmeow/proto/waE2E"    //nolint:depguard // what a phone writes
	"google.golang.org/protobuf/proto"
)

// A picture that can be viewed once arrives without its file, unless the device keeps these.
func TestViewOnceFilesAreKeptOnRequest(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newPictured(t, k)
		_, e := a.picture(1, map[string]any{"viewOnce": true})
		if from(e["media"], "status") != "expired" || e["viewOnce"] != true {
			t.Errorf("message.received = %v", e)
		}
		a.c.Call("PATCH", "/v1/devices/"+string(a.d.ID), map[string]any{"receive": map[string]any{"viewOnce": true}}, 200, nil)
		_, e = a.picture(2, map[string]any{"viewOnce": true})
		ready := a.event(postern.MediaReadyEv, 1)
		if ready["id"] != e["id"] || ready["viewOnce"] != true {
			t.Errorf("media.ready = %v, about %v", ready, e)
		}
		id, _ := from(ready["media"], "id").(string)
		if got := a.c.Download(postern.MediaID(id)); string(got) != string(a.file) {
			t.Errorf("the file came back with %d bytes, want %d", len(got), len(a.file))
		}
	})
}

// The better copy of a picture names it, and the announcement of an album is no message.
func TestBetterCopiesAndAlbumsArriveAsPictures(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newPictured(t, k)
		networkID, first := a.picture(1, nil)
		shown, err := k.Vendor.ShownMessage(phone, networkID)
		if err != nil {
			t.Fatal(err)
		}
		image := &waE2E.Message{}
		if err := proto.Unmarshal(shown.Raw, image); err != nil {
			t.Fatal(err)
		}
		a.write(&waE2E.Message{
			AssociatedChildMessage: &waE2E.FutureProofMessage{Message: image},
			MessageContextInfo: &waE2E.MessageContextInfo{MessageAssociation: &waE2E.MessageAssociation{
				AssociationType:  waE2E.MessageAssociation_HD_IMAGE_DUAL_UPLOAD.Enum(),
				ParentMessageKey: &waCommon.MessageKey{ID: &networkID},
			}},
		})
		better := a.event(postern.MessageReceived, 2)
		if better["type"] != "image" || better["hdOf"] != first["id"] {
			t.Errorf("the better copy arrives as %v, want one of %v", better, first["id"])
		}
		a.write(&waE2E.Message{AlbumMessage: &waE2E.AlbumMessage{ExpectedImageCount: new(uint32(2))}})
		arrived := []string{fmt.Sprint(first["id"]), fmt.Sprint(better["id"])}
		for n := range 2 {
			a.write(&waE2E.Message{ImageMessage: image.ImageMessage, MessageContextInfo: &waE2E.MessageContextInfo{
				MessageAssociation: &waE2E.MessageAssociation{
					AssociationType:  waE2E.MessageAssociation_MEDIA_ALBUM.Enum(),
					ParentMessageKey: &waCommon.MessageKey{ID: new("3EB0A1B0")}, MessageIndex: new(int32(n)),
				},
			}})
			e := a.event(postern.MessageReceived, 3+n)
			if e["type"] != "image" || e["hdOf"] != nil {
				t.Errorf("picture %d of an album arrives as %v", n, e)
			}
			arrived = append(arrived, fmt.Sprint(e["id"]))
		}
		a.write(&waE2E.Message{Conversation: new("after the album")})
		if e := a.event(postern.MessageReceived, 5); e["body"] != "after the album" {
			t.Errorf("the announcement of an album arrives as %v", e)
		}
		var ready []string
		for _, e := range a.hooks.AwaitCount(postern.MediaReadyEv, len(arrived)) {
			message, _ := e.Event["message"].(map[string]any)
			ready = append(ready, fmt.Sprint(message["id"]))
		}
		if slices.Sort(ready); !slices.Equal(ready, slices.Sorted(slices.Values(arrived))) {
			t.Errorf("the files of %v are ready, want those of %v", ready, arrived)
		}
	})
}

// pictured is a device to which a contact sends pictures.
type pictured struct {
	acting

	file []byte
}

func newPictured(t *testing.T, k *testkit.Kit) pictured {
	t.Helper()
	c := k.Workspace("growth")
	return pictured{acting{t, k, c, c.Receive("message.received", "media.*"), c.Link(phone)}, picture(t, asJPEG)}
}

// picture lets the contact send a picture, and returns its id on the network and the n-th
// message.received.
func (a pictured) picture(n int, members map[string]any) (networkID string, event map[string]any) {
	a.t.Helper()
	body := map[string]any{"from": reader, "type": "image", "media": map[string]any{"data": a.file, "mimeType": "image/jpeg"}}
	for name, value := range members {
		body[name] = value
	}
	var sent struct{ NetworkID string }
	a.c.Call("POST", "/v1/sandbox/devices/"+string(a.d.ID)+"/inbound", body, 200, &sent)
	return sent.NetworkID, a.event(postern.MessageReceived, n)
}
