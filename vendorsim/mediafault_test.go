package vendorsim_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waMmsRetry"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

func TestFaultsOfDownloads(t *testing.T) {
	t.Parallel()
	v := openVendor(t, t.TempDir())
	a := link(t, v, alice)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	msg := a.uploaded(data)
	download := func() error {
		got, err := a.wa.Download(t.Context(), msg)
		if err == nil && !bytes.Equal(got, data) {
			t.Errorf("downloaded %d other bytes", len(got))
		}
		return err
	}
	for fault0, want := range map[vendorsim.Fault]error{
		"media": whatsmeow.ErrMediaDownloadFailedWith404, "media:403": whatsmeow.ErrMediaDownloadFailedWith403,
		"media:404": whatsmeow.ErrMediaDownloadFailedWith404, "media:410": whatsmeow.ErrMediaDownloadFailedWith410,
		"media-damaged": whatsmeow.ErrInvalidMediaEncSHA256, "media-cut": io.ErrUnexpectedEOF,
	} {
		fault(t, v, alice, fault0)
		if err := download(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", fault0, err, want)
		}
		if err := download(); err != nil {
			t.Errorf("the download after %s: %v", fault0, err)
		}
	}
	fault(t, v, alice, "media-every:403")
	for range 2 {
		if err := download(); !errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith403) {
			t.Errorf("media-every:403: %v", err)
		}
	}
	fault(t, v, alice, "media-every:0")
	fault(t, v, alice, "media:503")
	if err := download(); err != nil {
		t.Errorf("a download that is repeated after a 503: %v", err)
	}
	link(t, v, bob)
	fault(t, v, bob, "media-every:404")
	if err := download(); err != nil {
		t.Errorf("a download with a fault of another account: %v", err)
	}
	for _, f := range []vendorsim.Fault{"media:200", "media:0", "media-every:x", "upload:1000", "media-nothing"} {
		if err := v.Fault(t.Context(), alice, f); !errors.Is(err, vendorsim.ErrUnknownFault) {
			t.Errorf("Fault(%s) = %v, want %v", f, err, vendorsim.ErrUnknownFault)
		}
	}
}

func TestFaultsOfUploads(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	for f, want := range map[vendorsim.Fault]string{"upload": "401", "upload:503": "503"} {
		fault(t, v, alice, f)
		_, err := a.wa.Upload(t.Context(), bytes.Repeat([]byte("x"), 1<<20), whatsmeow.MediaImage)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("upload with the fault %s: %v, want %s", f, err, want)
		}
		a.uploaded([]byte("x"))
	}
}

// askedAgain asks alice's phone for a file and returns the answer.
func (c *client) askedAgain(info *types.MessageInfo, key []byte) (*waMmsRetry.MediaRetryNotification, error) {
	c.t.Helper()
	if err := c.wa.SendMediaRetryReceipt(c.t.Context(), info, key); err != nil {
		c.t.Fatal(err)
	}
	answer := await(c, "MediaRetry", func(e *events.MediaRetry) bool { return e.MessageID == info.ID })
	return whatsmeow.DecryptMediaRetryNotification(answer, key)
}

func TestPhoneUploadsAgain(t *testing.T) {
	t.Parallel()
	v := openVendor(t, t.TempDir())
	a := link(t, v, alice)
	theirs := written(t, v, a, vendorsim.Content{Type: vendorsim.TypeImage, Media: &vendorsim.Media{Data: []byte("x")}})
	image := theirs.Message.ImageMessage
	own := &waE2E.Message{ImageMessage: a.uploaded([]byte("x"))}
	mine := theirs.Info
	mine.ID, mine.IsFromMe = a.sent(own), true
	for name, m := range map[string]struct {
		info  types.MessageInfo
		image *waE2E.ImageMessage
	}{"received": {theirs.Info, image}, "sent": {mine, own.ImageMessage}} {
		fault(t, v, alice, vendorsim.FaultMediaExpired)
		if _, err := a.wa.Download(t.Context(), m.image); !errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith410) {
			t.Errorf("%s: download of an expired file: %v, want 410", name, err)
		}
		got, err := a.askedAgain(&m.info, m.image.GetMediaKey())
		if err != nil || got.GetResult() != waMmsRetry.MediaRetryNotification_SUCCESS ||
			got.GetDirectPath() == m.image.GetDirectPath() {
			t.Fatalf("%s: answer is %v, %v, want another path", name, got, err)
		}
		m.image.DirectPath = got.DirectPath
		if data, err := a.wa.Download(t.Context(), m.image); err != nil || string(data) != "x" {
			t.Errorf("%s: downloaded %q, %v", name, data, err)
		}
	}
	if got := shown(t, v, alice, theirs.Info.ID).Media.Path; got != image.GetDirectPath() {
		t.Errorf("alice's phone has the file at %s, want %s", got, image.GetDirectPath())
	}
}

func TestPhoneNoLongerHasTheFile(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	m := written(t, v, a, vendorsim.Content{Type: vendorsim.TypeImage, Media: &vendorsim.Media{Data: []byte("x")}})
	key := m.Message.ImageMessage.GetMediaKey()

	unknown, elsewhere := m.Info, m.Info
	unknown.ID = "UNKNOWN"
	elsewhere.Chat = jid(carol)
	for name, info := range map[string]types.MessageInfo{"unknown message": unknown, "another chat": elsewhere} {
		if _, err := a.askedAgain(&info, key); !errors.Is(err, whatsmeow.ErrMediaNotAvailableOnPhone) {
			t.Errorf("%s: %v, want %v", name, err, whatsmeow.ErrMediaNotAvailableOnPhone)
		}
	}
	fault(t, v, alice, vendorsim.FaultMediaGone)
	if _, err := a.askedAgain(&m.Info, key); !errors.Is(err, whatsmeow.ErrMediaNotAvailableOnPhone) {
		t.Errorf("%s: %v, want %v", vendorsim.FaultMediaGone, err, whatsmeow.ErrMediaNotAvailableOnPhone)
	}
	if _, err := a.askedAgain(&m.Info, bytes.Repeat([]byte{1}, 32)); err == nil {
		t.Error("a request with another key is answered as if it could be read")
	}
	fault(t, v, alice, vendorsim.FaultMediaSilent)
	if err := a.wa.SendMediaRetryReceipt(t.Context(), &m.Info, key); err != nil {
		t.Fatal(err)
	}
	if _, err := a.askedAgain(&m.Info, key); err != nil {
		t.Errorf("the request after one without an answer: %v", err)
	}
	if n := count[*events.MediaRetry](a); n != 0 {
		t.Errorf("%d answers came to the request that gets none", n)
	}
}
