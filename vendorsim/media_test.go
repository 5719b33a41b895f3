package vendorsim_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

// written lets bob write content to alice, and returns what her client gets.
func written(t *testing.T, v *vendorsim.Vendor, c *client, content vendorsim.Content) *events.Message {
	t.Helper()
	id, err := v.SendContent(t.Context(), alice, bob, content)
	if err != nil {
		t.Fatal(err)
	}
	return c.arrived(id)
}

// arrived waits for the message with an id.
func (c *client) arrived(id string) *events.Message {
	c.t.Helper()
	return await(c, "message "+id, func(m *events.Message) bool { return m.Info.ID == id })
}

// sent sends a message to bob and returns its id.
func (c *client) sent(msg *waE2E.Message) string {
	c.t.Helper()
	resp, err := c.wa.SendMessage(c.t.Context(), jid(bob), msg)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.ID
}

// shown finds a message on the phone of a number.
func shown(t *testing.T, v *vendorsim.Vendor, number, id string) vendorsim.Shown {
	t.Helper()
	m, err := v.ShownMessage(number, id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// readMedia reads the file of a message as a phone does.
func readMedia(v *vendorsim.Vendor, m vendorsim.Media) ([]byte, error) {
	r, err := v.OpenMedia(m)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

func sum(data []byte) []byte {
	s := sha256.Sum256(data)
	return s[:]
}

func TestPhonesWriteMedia(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	data := []byte("not really a picture")
	for _, tt := range []struct {
		name      string
		content   vendorsim.Content
		mediaType string // what the stanza calls it; "" for a text
		file      func(*waE2E.Message) whatsmeow.DownloadableMessage
		check     func(*events.Message) bool
	}{
		{
			"image",
			vendorsim.Content{Type: vendorsim.TypeImage, Body: "look", Media: &vendorsim.Media{
				MimeType: "image/png", Width: 4, Height: 3,
			}},
			"image",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.ImageMessage },
			func(m *events.Message) bool {
				i := m.Message.ImageMessage
				return i.GetCaption() == "look" && i.GetWidth() == 4 && i.GetHeight() == 3 && i.GetMimetype() == "image/png"
			},
		},
		{
			"image to see once",
			vendorsim.Content{Type: vendorsim.TypeImage, Media: &vendorsim.Media{ViewOnce: true}},
			"image",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.ImageMessage },
			func(m *events.Message) bool { return m.IsViewOnceV2 && m.Message.ImageMessage.GetViewOnce() },
		},
		{
			"video",
			vendorsim.Content{Type: vendorsim.TypeVideo, Media: &vendorsim.Media{Seconds: 7}},
			"video",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.VideoMessage },
			func(m *events.Message) bool { return m.Message.VideoMessage.GetSeconds() == 7 },
		},
		{
			"gif",
			vendorsim.Content{Type: vendorsim.TypeVideo, Media: &vendorsim.Media{GIF: true}},
			"gif",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.VideoMessage },
			func(m *events.Message) bool { return m.Message.VideoMessage.GetGifPlayback() },
		},
		{
			"round video",
			vendorsim.Content{Type: vendorsim.TypeVideo, Media: &vendorsim.Media{Round: true}},
			"",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.PtvMessage },
			func(*events.Message) bool { return true },
		},
		{
			"audio",
			vendorsim.Content{Type: vendorsim.TypeAudio, Media: &vendorsim.Media{Seconds: 3}},
			"audio",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.AudioMessage },
			func(m *events.Message) bool { return !m.Message.AudioMessage.GetPTT() },
		},
		{
			"voice to hear once",
			vendorsim.Content{Type: vendorsim.TypeVoice, Media: &vendorsim.Media{
				ViewOnce: true, Waveform: []byte{1, 2},
			}},
			"ptt",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.AudioMessage },
			func(m *events.Message) bool {
				return m.IsViewOnceV2Extension && m.Message.AudioMessage.GetPTT() &&
					bytes.Equal(m.Message.AudioMessage.GetWaveform(), []byte{1, 2})
			},
		},
		{
			"document",
			vendorsim.Content{Type: vendorsim.TypeDocument, Media: &vendorsim.Media{FileName: "a.pdf"}},
			"document",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.DocumentMessage },
			func(m *events.Message) bool {
				return !m.IsDocumentWithCaption && m.Message.DocumentMessage.GetFileName() == "a.pdf"
			},
		},
		{
			"document with caption",
			vendorsim.Content{
				Type: vendorsim.TypeDocument, Body: "read", Media: &vendorsim.Media{},
			},
			"document",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.DocumentMessage },
			func(m *events.Message) bool {
				return m.IsDocumentWithCaption && m.Message.DocumentMessage.GetCaption() == "read"
			},
		},
		{
			"sticker",
			vendorsim.Content{Type: vendorsim.TypeSticker, Media: &vendorsim.Media{Animated: true}},
			"sticker",
			func(m *waE2E.Message) whatsmeow.DownloadableMessage { return m.StickerMessage },
			func(m *events.Message) bool { return m.Message.StickerMessage.GetIsAnimated() },
		},
	} {
		tt.content.Media.Data = data
		m := written(t, v, a, tt.content)
		want := "media"
		if tt.mediaType == "" {
			want = "text"
		}
		if m.Info.Type != want || m.Info.MediaType != tt.mediaType || !tt.check(m) {
			t.Errorf("%s comes as %s/%s: %v", tt.name, m.Info.Type, m.Info.MediaType, m.Message)
		}
		if got, err := a.wa.Download(t.Context(), tt.file(m.Message)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: downloaded %q, %v", tt.name, got, err)
		}
		e := entry(t, v, m.Info.ID)
		if e.Media == nil || !bytes.Equal(e.Media.SHA256, sum(data)) || e.Media.Size != int64(len(data)) ||
			e.Media.Data != nil {
			t.Errorf("%s: the ledger has %+v", tt.name, e.Media)
		}
		// What a phone writes, another one reads as the same.
		back := a.sent(forwarded(t, m))
		got := shown(t, v, bob, back)
		if got.Type != tt.content.Type || got.Body != tt.content.Body || !reflect.DeepEqual(got.Media, e.Media) {
			t.Errorf("%s: sent back it is %s %+v, want %+v", tt.name, got.Type, got.Media, e.Media)
		}
	}
}

// forwarded returns the message that an event carries.
func forwarded(t *testing.T, m *events.Message) *waE2E.Message {
	t.Helper()
	msg, ok := proto.Clone(m.RawMessage).(*waE2E.Message)
	if !ok {
		t.Fatal("no message")
	}
	return msg
}

func TestPhonesReadMedia(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		v := openVendor(t, dir)
		a := link(t, v, alice)
		for _, size := range []int{0, 1, 15, 16, 32 << 10, 100_000} {
			data := bytes.Repeat([]byte("x"), size)
			id := a.sent(&waE2E.Message{ImageMessage: a.uploaded(data)})
			m := shown(t, v, bob, id).Media
			if got, err := readMedia(v, *m); err != nil || !bytes.Equal(got, data) {
				t.Errorf("bob's phone reads %d bytes, %v, want %d", len(got), err, size)
			}
		}
	}
}

func TestPhonesCheckMedia(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	for name, spoil := range map[string]func(*waE2E.ImageMessage){
		"hash of the plaintext": func(m *waE2E.ImageMessage) { m.FileSHA256 = sum([]byte("other")) },
		"hash of the file":      func(m *waE2E.ImageMessage) { m.FileEncSHA256 = sum([]byte("other")) },
		"length":                func(m *waE2E.ImageMessage) { m.FileLength = new(uint64(3)) },
		"key":                   func(m *waE2E.ImageMessage) { m.MediaKey = sum([]byte("other")) },
	} {
		msg := a.uploaded([]byte("data"))
		spoil(msg)
		id := a.sent(&waE2E.Message{ImageMessage: msg})
		if _, err := readMedia(v, *shown(t, v, bob, id).Media); !errors.Is(err, vendorsim.ErrMediaDamaged) {
			t.Errorf("wrong %s: %v, want %v", name, err, vendorsim.ErrMediaDamaged)
		}
	}
	if _, err := v.OpenMedia(vendorsim.Media{Path: "/v/nothing"}); !errors.Is(err, vendorsim.ErrMediaGone) {
		t.Errorf("a file that is not there: %v, want %v", err, vendorsim.ErrMediaGone)
	}
	if _, err := v.ShownMessage(bob, "nothing"); !errors.Is(err, vendorsim.ErrUnknownMessage) {
		t.Errorf("a message that is not there: %v, want %v", err, vendorsim.ErrUnknownMessage)
	}
}

func TestOwnerSendsMediaFromThePhone(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	file, err := v.Upload(alice, vendorsim.TypeImage, strings.NewReader("holiday"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.TypeContent(t.Context(), alice, bob, vendorsim.Content{Type: vendorsim.TypeImage, Media: &file})
	if err != nil {
		t.Fatal(err)
	}
	m := a.arrived(id)
	if got, err := a.wa.Download(t.Context(), m.Message.ImageMessage); err != nil || string(got) != "holiday" {
		t.Errorf("downloaded %q, %v", got, err)
	}
	if !m.Info.IsFromMe || m.Info.MediaType != "image" {
		t.Errorf("copy is %+v", m.Info)
	}
	if _, err := v.TypeContent(t.Context(), alice, bob, vendorsim.Content{Type: vendorsim.TypeImage}); !errors.Is(err,
		vendorsim.ErrUnknownType) {
		t.Errorf("image without a file: %v, want %v", err, vendorsim.ErrUnknownType)
	}
	if _, err := v.Upload(alice, vendorsim.TypeText, strings.NewReader("x")); !errors.Is(err, vendorsim.ErrUnknownType) {
		t.Errorf("file of a text: %v, want %v", err, vendorsim.ErrUnknownType)
	}
	_, err = v.Upload(carol, vendorsim.TypeImage, strings.NewReader("x"))
	if !errors.Is(err, vendorsim.ErrUnknownAccount) {
		t.Errorf("file for nobody: %v, want %v", err, vendorsim.ErrUnknownAccount)
	}
}

func mustMarshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
