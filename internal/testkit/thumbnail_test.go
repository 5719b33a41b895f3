package testkit_test

import (
	"bytes"
	"image/jpeg"
	"testing"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// A video has a thumbnail: one that was made to send it, or that its sender attached, also if the
// sender's phone had to upload the video again. Other workspaces do not find it.
func TestVideosHaveThumbnails(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("enterprise")
		hooks := c.Receive("message.received", "media.*")
		d := c.Link(phone)
		thumbnail := func(ws postern.WorkspaceID, id postern.MediaID) ([]byte, error) {
			caller, err := k.Gateway().Workspaces.Caller(t.Context(), access.Operator(), ws)
			if err != nil {
				t.Fatal(err)
			}
			return k.Gateway().Media.Thumbnail(t.Context(), caller, id)
		}
		check := func(what string, id postern.MediaID) {
			b, err := thumbnail(c.Workspace, id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := jpeg.Decode(bytes.NewReader(b)); err != nil {
				t.Errorf("the thumbnail of %s has %d bytes: %v", what, len(b), err)
			}
		}
		file := uploadFile(t, c, "a.mp4", movie(t))
		if b, err := thumbnail(c.Workspace, file.ID); len(b) > 0 || err != nil {
			t.Errorf("a video that was never sent has a thumbnail of %d bytes (%v)", len(b), err)
		}
		var m postern.Message
		c.Call("POST", "/v1/messages", withFile(file, map[string]any{"type": "video"}, map[string]any{
			"deviceId": d.ID, "to": reader,
		}), 202, &m)
		c.AwaitMessage(m.ID, postern.Read)
		check("a video that was sent", file.ID)
		for i, fault := range []string{"", "media:410"} {
			if fault != "" {
				if err := k.Vendor.Fault(t.Context(), phone, "media:410"); err != nil {
					t.Fatal(err)
				}
			}
			c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound",
				withFile(file, map[string]any{"type": "video"}, map[string]any{"from": customer}), 200, nil)
			message, _ := hooks.AwaitCount(postern.MediaReadyEv, i+1)[i].Event["message"].(map[string]any)
			id, _ := from(message["media"], "id").(string)
			check("a video that arrived after the fault "+fault, postern.MediaID(id))
			other := k.Workspace("growth")
			if b, err := thumbnail(other.Workspace, postern.MediaID(id)); len(b) > 0 || err == nil {
				t.Errorf("another workspace gets a thumbnail of %d bytes (%v)", len(b), err)
			}
		}
	})
}
