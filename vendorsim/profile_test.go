package vendorsim_test

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

func portrait(t *testing.T, side int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, side, side)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pnOf(num string) types.JID { return types.NewJID(num[1:], types.DefaultUserServer) }

// about returns what others read about a number.
func (c *client) about(num string) types.UserInfo {
	c.t.Helper()
	jid := pnOf(num)
	found, err := c.wa.GetUserInfo(c.t.Context(), []types.JID{jid})
	if err != nil {
		c.t.Fatal(err)
	}
	return found[jid]
}

// TestProfile sets the profile with a companion. Another account sees it, also after the vendor was restarted.
func TestProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	a, b := link(t, v, alice), link(t, v, bob)
	a.synced()
	if err := a.wa.SendAppState(t.Context(), appstate.BuildSettingPushName("Alice")); err != nil {
		t.Fatal(err)
	}
	if err := a.wa.SetStatusMessage(t.Context(), types.SetStatusInput{Text: new("At work")}); err != nil {
		t.Fatal(err)
	}
	long := types.SetStatusInput{Text: new(strings.Repeat("x", 140))}
	if err := a.wa.SetStatusMessage(t.Context(), long); err == nil {
		t.Error("a text was taken that is too long")
	}
	id, err := a.wa.SetGroupPhoto(t.Context(), types.EmptyJID, portrait(t, 64))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.wa.SetGroupPhoto(t.Context(), types.EmptyJID, []byte("text")); !errors.Is(err, whatsmeow.ErrInvalidImageFormat) {
		t.Errorf("what is no picture: %v", err)
	}
	if seen := b.about(alice); seen.Status != "At work" || seen.PictureID != id {
		t.Errorf("others read %+v", seen)
	}
	info, err := b.wa.GetProfilePictureInfo(t.Context(), pnOf(alice), nil)
	if err != nil || info.ID != id {
		t.Fatalf("picture is %+v, %v", info, err)
	}
	write(t, v, bob, "to alice")
	if _, err := v.Type(t.Context(), alice, bob, "by phone"); err != nil {
		t.Fatal(err)
	}
	if got := b.message("by phone").Info.PushName; got != "Alice" {
		t.Errorf("the name is %q", got)
	}
	want, _ := v.PhoneProfiles().Get(alice)
	if want.Name != "Alice" || !bytes.Equal(want.Picture, portrait(t, 64)) {
		t.Errorf("the profile is %+v", want)
	}
	if err := v.PhoneProfiles().Rename(t.Context(), alice, "Alice at home"); err != nil {
		t.Fatal(err)
	}
	await(a, "the new name", func(e *events.PushNameSetting) bool { return e.Action.GetName() == "Alice at home" })
	if _, err := a.wa.SetGroupPhoto(t.Context(), types.EmptyJID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.wa.GetProfilePictureInfo(t.Context(), pnOf(alice), nil); !errors.Is(err, whatsmeow.ErrProfilePictureNotSet) {
		t.Errorf("the removed picture: %v", err)
	}
	if _, err := b.wa.SetGroupPhoto(t.Context(), b.lidOf(alice), portrait(t, 64)); err == nil {
		t.Error("somebody has set the picture of another person")
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := openVendor(t, dir).PhoneProfiles().Get(alice)
	if again.Name != "Alice at home" || again.About != "At work" || again.Picture != nil {
		t.Errorf("after a restart the profile is %+v", again)
	}
}
