package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// kept is a file on the network, with the members that whatsmeow's documentation of Upload
// lists.
func kept(class Class) File {
	return File{
		Class: class, Path: "/v/t62.1-2/x.enc?ccb=11-4", URL: "https://media.example/v/t62.1-2/x.enc?ccb=11-4",
		Key: bytes.Repeat([]byte{1}, 32), SHA256: bytes.Repeat([]byte{2}, 32), EncSHA256: bytes.Repeat([]byte{3}, 32),
		Size: 4321, KeyTime: 1_796_144_400,
	}
}

// kinds are all kinds with a file, each with the message that is written by hand for it.
func kinds() map[string]struct {
	content postern.Content
	file    network.Attachment
	want    *waE2E.Message
} {
	type row = struct {
		content postern.Content
		file    network.Attachment
		want    *waE2E.Message
	}
	f := kept("")
	url, path, size, at := &f.URL, &f.Path, proto.Uint64(4321), proto.Int64(1_796_144_400)
	info := func() *waE2E.ContextInfo {
		return &waE2E.ContextInfo{IsForwarded: proto.Bool(true), ForwardingScore: proto.Uint32(1)}
	}
	small, wave := []byte("\xff\xd8\xff jpeg"), bytes.Repeat([]byte{50}, 64)
	image := func() *waE2E.ImageMessage {
		return &waE2E.ImageMessage{
			URL: url, DirectPath: path, MediaKey: f.Key, FileEncSHA256: f.EncSHA256, FileSHA256: f.SHA256, FileLength: size,
			MediaKeyTimestamp: at, Mimetype: proto.String("image/png"), Width: proto.Uint32(4), Height: proto.Uint32(3),
			JPEGThumbnail: small,
		}
	}
	video := func() *waE2E.VideoMessage {
		return &waE2E.VideoMessage{
			URL: url, DirectPath: path, MediaKey: f.Key, FileEncSHA256: f.EncSHA256, FileSHA256: f.SHA256, FileLength: size,
			MediaKeyTimestamp: at, Mimetype: proto.String("video/mp4"), Width: proto.Uint32(4), Height: proto.Uint32(3),
			Seconds: proto.Uint32(7), JPEGThumbnail: small,
		}
	}
	audio := func() *waE2E.AudioMessage {
		return &waE2E.AudioMessage{
			URL: url, DirectPath: path, MediaKey: f.Key, FileEncSHA256: f.EncSHA256, FileSHA256: f.SHA256, FileLength: size,
			MediaKeyTimestamp: at, Mimetype: proto.String("audio/mpeg"), Seconds: proto.Uint32(7),
		}
	}
	document := func() *waE2E.DocumentMessage {
		return &waE2E.DocumentMessage{
			URL: url, DirectPath: path, MediaKey: f.Key, FileEncSHA256: f.EncSHA256, FileSHA256: f.SHA256, FileLength: size,
			MediaKeyTimestamp: at, Mimetype: proto.String("application/pdf"), FileName: proto.String("a.pdf"),
			Title: proto.String("a.pdf"), JPEGThumbnail: small,
		}
	}
	captioned, once, again, gif, sight := image(), image(), image(), video(), video()
	captioned.Caption, once.ViewOnce, again.ContextInfo = proto.String("look"), proto.Bool(true), info()
	gif.GifPlayback, sight.ViewOnce, sight.Caption = proto.Bool(true), proto.Bool(true), proto.String("look")
	voice, heard, sound := audio(), audio(), audio()
	for _, v := range []*waE2E.AudioMessage{voice, heard} {
		v.PTT, v.Waveform, v.Mimetype = proto.Bool(true), wave, proto.String("audio/ogg; codecs=opus")
	}
	heard.ViewOnce, sound.ViewOnce = proto.Bool(true), proto.Bool(true)
	page := document()
	page.Caption = proto.String("look")

	sized := &postern.Media{MIMEType: "image/png", Size: 4321, Width: 4, Height: 3}
	clip := &postern.Media{MIMEType: "video/mp4", Size: 4321, Width: 4, Height: 3, Duration: 7}
	tune := &postern.Media{MIMEType: "audio/mpeg", Size: 4321, Duration: 7}
	note := &postern.Media{MIMEType: "audio/ogg; codecs=opus", Size: 4321, Duration: 7}
	paper := &postern.Media{MIMEType: "application/pdf", Size: 4321, Filename: "a.pdf"}
	webp := &postern.Media{MIMEType: "image/webp", Size: 4321, Width: 512, Height: 512}
	seen, looped, round, forwarded := postern.Extra{ViewOnce: true}, postern.Extra{GIF: true}, postern.Extra{Round: true},
		postern.Extra{Forwarded: true}
	thumb := network.Attachment{Thumbnail: small}
	return map[string]row{
		"image": {
			postern.Content{Kind: postern.KindImage, Text: "look", Media: sized},
			thumb,
			&waE2E.Message{ImageMessage: captioned},
		},
		"image to see once": {
			postern.Content{Kind: postern.KindImage, Media: sized, Extra: seen},
			thumb,
			&waE2E.Message{ViewOnceMessageV2: wrap(&waE2E.Message{ImageMessage: once})},
		},
		"forwarded image": {
			postern.Content{Kind: postern.KindImage, Media: sized, Extra: forwarded},
			thumb,
			&waE2E.Message{ImageMessage: again},
		},
		"video": {postern.Content{Kind: postern.KindVideo, Media: clip}, thumb, &waE2E.Message{VideoMessage: video()}},
		"gif": {
			postern.Content{Kind: postern.KindVideo, Media: clip, Extra: looped},
			thumb,
			&waE2E.Message{VideoMessage: gif},
		},
		"round video": {
			postern.Content{Kind: postern.KindVideo, Media: clip, Extra: round},
			thumb,
			&waE2E.Message{PtvMessage: video()},
		},
		"video to see once": {
			postern.Content{Kind: postern.KindVideo, Text: "look", Media: clip, Extra: seen},
			thumb,
			&waE2E.Message{ViewOnceMessageV2: wrap(&waE2E.Message{VideoMessage: sight})},
		},
		"audio": {
			postern.Content{Kind: postern.KindAudio, Media: tune},
			network.Attachment{},
			&waE2E.Message{AudioMessage: audio()},
		},
		"audio to hear once": {
			postern.Content{Kind: postern.KindAudio, Media: tune, Extra: seen},
			network.Attachment{},
			&waE2E.Message{ViewOnceMessageV2Extension: wrap(&waE2E.Message{AudioMessage: sound})},
		},
		"voice": {
			postern.Content{Kind: postern.KindVoice, Media: note},
			network.Attachment{Waveform: wave},
			&waE2E.Message{AudioMessage: voice},
		},
		"voice to hear once": {
			postern.Content{Kind: postern.KindVoice, Media: note, Extra: seen},
			network.Attachment{Waveform: wave},
			&waE2E.Message{ViewOnceMessageV2Extension: wrap(&waE2E.Message{AudioMessage: heard})},
		},
		"document": {
			postern.Content{Kind: postern.KindDocument, Media: paper},
			thumb,
			&waE2E.Message{DocumentMessage: document()},
		},
		"document with a caption": {
			postern.Content{Kind: postern.KindDocument, Text: "look", Media: paper},
			thumb,
			&waE2E.Message{DocumentWithCaptionMessage: wrap(&waE2E.Message{DocumentMessage: page})},
		},
		"sticker": {
			postern.Content{Kind: postern.KindSticker, Media: webp},
			network.Attachment{Animated: true},
			&waE2E.Message{StickerMessage: &waE2E.StickerMessage{
				URL: url, DirectPath: path, MediaKey: f.Key, FileEncSHA256: f.EncSHA256, FileSHA256: f.SHA256, FileLength: size,
				MediaKeyTimestamp: at, Mimetype: proto.String("image/webp"), Width: proto.Uint32(512),
				Height: proto.Uint32(512), IsAnimated: proto.Bool(true),
			}},
		},
	}
}

// TestMediaIsAsWhatsmeowDescribesIt compares each kind, member by member, with a message that
// is written by hand as the documentation of whatsmeow's Upload shows it, and reads it back.
func TestMediaIsAsWhatsmeowDescribesIt(t *testing.T) {
	t.Parallel()
	for name, tt := range kinds() {
		file := kept(ClassOf(tt.content.Kind))
		tt.file.Ref, tt.file.MIMEType = file.Ref(), tt.content.Media.MIMEType
		got, err := ToWire(Outgoing{Content: tt.content, File: &tt.file})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !proto.Equal(got, tt.want) {
			t.Errorf("%s is\n%v, want\n%v", name, got, tt.want)
		}
		want := tt.content
		want.Media = new(*tt.content.Media)
		want.Media.Status = postern.MediaPending
		in, ok := FromWire(got)
		if !ok || !reflect.DeepEqual(in.Content, want) {
			t.Errorf("%s is read as %+v %+v, %v", name, in.Content, in.Content.Media, ok)
		}
		file.URL, file.Version = "", fileVersion
		if tt.content.Kind == postern.KindVideo {
			file.Thumbnail = tt.file.Thumbnail
		}
		if back, ok := ParseRef(in.File); !ok || !reflect.DeepEqual(back, file) {
			t.Errorf("the file of %s is read as %+v, %v", name, back, ok)
		}
	}
}

// TestWrappersOfMediaAreRead reads messages that only phones write.
func TestWrappersOfMediaAreRead(t *testing.T) {
	t.Parallel()
	image := &waE2E.Message{ImageMessage: &waE2E.ImageMessage{}}
	lottie := &waE2E.Message{StickerMessage: &waE2E.StickerMessage{IsLottie: new(true), Mimetype: new("application/was")}}
	for name, tt := range map[string]struct {
		m    *waE2E.Message
		kind postern.Kind
		once bool
	}{
		"image in HD": {&waE2E.Message{
			AssociatedChildMessage: wrap(image), MessageContextInfo: &waE2E.MessageContextInfo{
				MessageAssociation: &waE2E.MessageAssociation{
					AssociationType: waE2E.MessageAssociation_HD_IMAGE_DUAL_UPLOAD.Enum(),
				},
			},
		}, postern.KindImage, false},
		"old form of an image to see once": {&waE2E.Message{ViewOnceMessage: wrap(image)}, postern.KindImage, true},
		"image to see once that disappears": {
			nested(2, &waE2E.Message{ViewOnceMessageV2: wrap(image)}),
			postern.KindImage, true,
		},
		"drawn sticker":      {&waE2E.Message{LottieStickerMessage: wrap(lottie)}, postern.KindSticker, false},
		"text to see once":   {&waE2E.Message{ViewOnceMessageV2: wrap(text("hello"))}, postern.KindText, false},
		"image for everyone": {image, postern.KindImage, false},
	} {
		in, ok := FromWire(tt.m)
		if !ok || in.Content.Kind != tt.kind || in.Content.ViewOnce != tt.once {
			t.Errorf("%s is read as %+v, %v", name, in.Content, ok)
		}
	}
}

// A better copy of a picture names the picture, inside of its wrapper or outside.
func TestBetterCopiesNameTheirPicture(t *testing.T) {
	t.Parallel()
	info := func(kind waE2E.MessageAssociation_AssociationType) *waE2E.MessageContextInfo {
		return &waE2E.MessageContextInfo{MessageAssociation: &waE2E.MessageAssociation{
			AssociationType: &kind, ParentMessageKey: &waCommon.MessageKey{ID: new("3EB0")},
		}}
	}
	image := &waE2E.ImageMessage{}
	for name, tt := range map[string]struct {
		m    *waE2E.Message
		want string
	}{
		"outside": {&waE2E.Message{
			AssociatedChildMessage: wrap(&waE2E.Message{ImageMessage: image}),
			MessageContextInfo:     info(waE2E.MessageAssociation_HD_IMAGE_DUAL_UPLOAD),
		}, "3EB0"},
		"inside": {&waE2E.Message{AssociatedChildMessage: wrap(&waE2E.Message{
			ImageMessage: image, MessageContextInfo: info(waE2E.MessageAssociation_HEVC_VIDEO_DUAL_UPLOAD),
		})}, "3EB0"},
		"of an album": {&waE2E.Message{
			ImageMessage: image, MessageContextInfo: info(waE2E.MessageAssociation_MEDIA_ALBUM),
		}, ""},
		"text": {&waE2E.Message{
			Conversation: new("x"), MessageContextInfo: info(waE2E.MessageAssociation_HD_IMAGE_DUAL_UPLOAD),
		}, ""},
	} {
		if in, ok := FromWire(tt.m); !ok || in.BetterOf != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, in.BetterOf, ok, tt.want)
		}
	}
}

// TestHostileMedia reads what no app writes.
func TestHostileMedia(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("字", 1<<20)
	in, ok := FromWire(&waE2E.Message{VideoMessage: &waE2E.VideoMessage{
		Caption: &big, Mimetype: &big, FileLength: new(uint64(1 << 60)), Seconds: new(uint32(math.MaxUint32)),
		Width: new(uint32(math.MaxUint32)), Height: new(uint32(5)), MediaKey: []byte(big), DirectPath: &big,
		FileSHA256: []byte(big), FileEncSHA256: []byte{1}, MediaKeyTimestamp: new(int64(math.MinInt64)),
		JPEGThumbnail: []byte("\xff\xd8\xff" + big),
	}})
	want := postern.Media{MIMEType: "application/octet-stream", Status: postern.MediaPending}
	switch {
	case !ok || in.Content.Kind != postern.KindVideo:
		t.Errorf("the message is read as %s, %v", in.Content.Kind, ok)
	case *in.Content.Media != want:
		t.Errorf("the file is %+v, want %+v", *in.Content.Media, want)
	case utf8.RuneCountInString(in.Content.Text) != postern.MaxText || !in.Content.Truncated:
		t.Errorf("the caption has %d bytes", len(in.Content.Text))
	case len(in.File) > 200:
		t.Errorf("the reference has %d bytes", len(in.File))
	}
	if f, ok := ParseRef(in.File); ok {
		t.Errorf("the file can be fetched: %+v", f)
	}
}

// Only what looks like a JPEG is kept as the thumbnail of a video.
func TestHostileThumbnails(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\xff\xd8", "<svg/>", "\x89PNG"} {
		in, _ := FromWire(&waE2E.Message{VideoMessage: &waE2E.VideoMessage{JPEGThumbnail: []byte(text)}})
		if bytes.Contains(in.File, []byte("thumbnail")) {
			t.Errorf("%q is kept: %s", text, in.File)
		}
	}
}

func TestIncompleteFilesAreUseless(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*File){
		"no path":                           func(f *File) { f.Path = "" },
		"path to another host":              func(f *File) { f.Path = "@example.com/x" },
		"path with a line":                  func(f *File) { f.Path = "/x\r\nHost: y" },
		"path with a fragment":              func(f *File) { f.Path = "/x?y#" },
		"path that is too long":             func(f *File) { f.Path = "/" + strings.Repeat("x", maxPath) },
		"no key":                            func(f *File) { f.Key = nil },
		"short key":                         func(f *File) { f.Key = f.Key[:31] },
		"no hash":                           func(f *File) { f.SHA256 = nil },
		"no hash of what is on the network": func(f *File) { f.EncSHA256 = nil },
		"unknown class":                     func(f *File) { f.Class = "sound" },
	} {
		f := kept(ClassAudio)
		if _, ok := ParseRef(f.Ref()); !ok {
			t.Fatal("a complete file is useless")
		}
		spoil(&f)
		if _, ok := ParseRef(f.Ref()); ok {
			t.Errorf("a file with %s is complete", name)
		}
	}
	later, _ := json.Marshal(File{Version: fileVersion + 1})
	for _, ref := range []network.Ref{nil, {}, network.Ref("null"), network.Ref("{"), later} {
		if _, ok := ParseRef(ref); ok {
			t.Errorf("%q is a file", ref)
		}
	}
}

func TestMediaWithoutItsFileIsRejected(t *testing.T) {
	t.Parallel()
	image := postern.Content{Kind: postern.KindImage, Media: &postern.Media{}}
	for name, m := range map[string]Outgoing{
		"no file":       {Content: image},
		"a broken file": {Content: image, File: &network.Attachment{Ref: network.Ref("{}")}},
		"no description": {
			Content: postern.Content{Kind: postern.KindImage},
			File:    &network.Attachment{Ref: kept(ClassImage).Ref()},
		},
	} {
		var rejected *network.Rejected
		if _, err := ToWire(m); !errors.As(err, &rejected) || rejected.Code != postern.MediaUnusable {
			t.Errorf("with %s: %v, want Rejected", name, err)
		}
	}
}

func TestQuotedMediaIsItsCaptionOrItsKind(t *testing.T) {
	t.Parallel()
	media := &postern.Media{MIMEType: "image/png"}
	for want, c := range map[string]postern.Content{
		"look":    {Kind: postern.KindImage, Text: "look", Media: media},
		"[voice]": {Kind: postern.KindVoice, Media: media},
	} {
		m, err := ToWire(Outgoing{Content: postern.Text("yes"), Quote: &Quote{NetworkID: "3EB0", Content: c}})
		if err != nil {
			t.Fatal(err)
		}
		quoted := m.GetExtendedTextMessage().GetContextInfo().GetQuotedMessage()
		if got := quoted.GetConversation(); got != want {
			t.Errorf("the quoted text is %q, want %q", got, want)
		}
	}
}

func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("字", 100)
	for declared, want := range map[string]string{
		"":                            "",
		"a.pdf":                       "a.pdf",
		"../../etc/passwd":            "passwd",
		`..\..\boot.ini`:              "boot.ini",
		"..":                          "",
		"invoice\u202efdp.exe":        "invoicefdp.exe",
		"a\x00b\r\nc\u200f.txt":       "ab c.txt",
		"\xff\xfe.pdf":                "pdf",
		"  two   words .txt ":         "two words .txt",
		long + ".pdf":                 strings.Repeat("字", 65) + ".pdf",
		long + "." + long:             strings.Repeat("字", 66),
		"👩\u200d💻.png":                "👩\u200d💻.png",
		"\u202e":                      "",
		strings.Repeat("../", 100000): "",
	} {
		if got := filename(declared); got != want {
			t.Errorf("%.40q is %q, want %q", declared, got, want)
		}
	}
}

// FuzzMedia reads messages with a file from any bytes.
func FuzzMedia(f *testing.F) {
	for _, tt := range kinds() {
		b, err := proto.Marshal(tt.want)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &waE2E.Message{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		in, ok := FromWire(m)
		media := in.Content.Media
		if !ok || media == nil {
			return
		}
		if in.File == nil || !in.Content.Kind.HasMedia() || media.Status != postern.MediaPending {
			t.Errorf("the message is read as %+v", in)
		}
		if media.Size < 0 || media.Size > maxFileSize || media.Width < 0 || media.Height < 0 || media.Duration < 0 ||
			len(media.Filename) > postern.MaxFilename || len(media.MIMEType) > maxType || len(in.File) > 8*maxPath {
			t.Errorf("the file is read as %+v", media)
		}
		if _, err := postern.EncodeJSON(media); err != nil {
			t.Errorf("the file has no JSON: %v", err)
		}
	})
}
