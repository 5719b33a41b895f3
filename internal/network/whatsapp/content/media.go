package content

import (
	"cmp"
	"math"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

const (
	// voiceType is the type of all voice messages; apps play no other.
	voiceType = "audio/ogg; codecs=opus"

	maxPixels  = 1 << 16          // of a side of a picture
	maxSeconds = 7 * 24 * 60 * 60 // of a recording
)

// attached is a message with a file, on its way to the network's form.
type attached struct {
	network.Attachment

	file    File
	media   postern.Media
	content postern.Content
	info    *waE2E.ContextInfo
}

// mediaToWire returns the network's form of a message with a file.
func mediaToWire(m Outgoing, info *waE2E.ContextInfo) (*waE2E.Message, error) {
	a := attached{content: m.Content, info: info}
	complete := m.File != nil && m.Content.Media != nil
	if complete {
		a.Attachment, a.media = *m.File, *m.Content.Media
		a.file, complete = ParseRef(m.File.Ref)
	}
	if !complete {
		return nil, &network.Rejected{Code: postern.MediaUnusable, Detail: "the file of the message is not on the network"}
	}
	return a.wrapped(a.message()), nil
}

func (a attached) message() *waE2E.Message {
	switch a.content.Kind {
	case postern.KindImage:
		return &waE2E.Message{ImageMessage: a.image()}
	case postern.KindVideo:
		if a.content.Round {
			return &waE2E.Message{PtvMessage: a.video()}
		}
		return &waE2E.Message{VideoMessage: a.video()}
	case postern.KindAudio, postern.KindVoice:
		return &waE2E.Message{AudioMessage: a.audio()}
	case postern.KindSticker:
		return &waE2E.Message{StickerMessage: a.sticker()}
	default:
		return &waE2E.Message{DocumentMessage: a.document()}
	}
}

// wrapped marks a message as apps do: one that is opened once, and a document with a caption,
// which older apps would show without it.
func (a attached) wrapped(m *waE2E.Message) *waE2E.Message {
	inner := &waE2E.FutureProofMessage{Message: m}
	switch {
	case a.content.ViewOnce && m.AudioMessage != nil:
		return &waE2E.Message{ViewOnceMessageV2Extension: inner}
	case a.content.ViewOnce:
		return &waE2E.Message{ViewOnceMessageV2: inner}
	case m.DocumentMessage != nil && a.content.Text != "":
		return &waE2E.Message{DocumentWithCaptionMessage: inner}
	}
	return m
}

func (a attached) image() *waE2E.ImageMessage {
	f := a.file
	return &waE2E.ImageMessage{
		URL: optional(f.URL), DirectPath: &f.Path, MediaKey: f.Key, MediaKeyTimestamp: f.keyTime(),
		FileSHA256: f.SHA256, FileEncSHA256: f.EncSHA256, FileLength: f.length(), Mimetype: a.mimeType("image/jpeg"),
		Width: positive(a.media.Width), Height: positive(a.media.Height), JPEGThumbnail: a.Thumbnail,
		Caption: optional(a.content.Text), ViewOnce: flag(a.content.ViewOnce), ContextInfo: a.info,
	}
}

func (a attached) video() *waE2E.VideoMessage {
	f := a.file
	return &waE2E.VideoMessage{
		URL: optional(f.URL), DirectPath: &f.Path, MediaKey: f.Key, MediaKeyTimestamp: &f.KeyTime,
		FileSHA256: f.SHA256, FileEncSHA256: f.EncSHA256, FileLength: f.length(), Mimetype: a.mimeType("video/mp4"),
		Seconds: wholeSeconds(a.media.Duration), Width: positive(a.media.Width), Height: positive(a.media.Height),
		JPEGThumbnail: a.Thumbnail, GifPlayback: flag(a.content.GIF),
		Caption: optional(a.content.Text), ViewOnce: flag(a.content.ViewOnce), ContextInfo: a.info,
	}
}

func (a attached) audio() *waE2E.AudioMessage {
	f := a.file
	m := &waE2E.AudioMessage{
		URL: optional(f.URL), DirectPath: &f.Path, MediaKey: f.Key, MediaKeyTimestamp: &f.KeyTime,
		FileSHA256: f.SHA256, FileEncSHA256: f.EncSHA256, FileLength: f.length(), Mimetype: a.mimeType("audio/mpeg"),
		Seconds: wholeSeconds(a.media.Duration), ViewOnce: flag(a.content.ViewOnce), ContextInfo: a.info,
	}
	if a.content.Kind == postern.KindVoice {
		m.PTT, m.Mimetype, m.Waveform = new(true), new(voiceType), a.Waveform
	}
	return m
}

func (a attached) document() *waE2E.DocumentMessage {
	f := a.file
	return &waE2E.DocumentMessage{
		URL: optional(f.URL), DirectPath: &f.Path, MediaKey: f.Key, MediaKeyTimestamp: &f.KeyTime,
		FileSHA256: f.SHA256, FileEncSHA256: f.EncSHA256, FileLength: f.length(), Mimetype: a.mimeType(anyType),
		FileName: optional(a.media.Filename), Title: optional(a.media.Filename), JPEGThumbnail: a.Thumbnail,
		Caption: optional(a.content.Text), ContextInfo: a.info,
	}
}

func (a attached) sticker() *waE2E.StickerMessage {
	f := a.file
	return &waE2E.StickerMessage{
		URL: optional(f.URL), DirectPath: &f.Path, MediaKey: f.Key, MediaKeyTimestamp: &f.KeyTime,
		FileSHA256: f.SHA256, FileEncSHA256: f.EncSHA256, FileLength: f.length(), Mimetype: a.mimeType("image/webp"),
		Width: positive(a.media.Width), Height: positive(a.media.Height), IsAnimated: flag(a.Animated),
		ContextInfo: a.info,
	}
}

func (a attached) mimeType(usual string) *string { return new(cmp.Or(a.MIMEType, usual)) }

// keyTime returns when the key of a file was made; nil for one without a key.
func (f File) keyTime() *int64 {
	if f.Plain {
		return nil
	}
	return &f.KeyTime
}

func (f File) length() *uint64 { return new(uint64(max(f.Size, 0))) }

// wholeSeconds returns a length as the network counts it, or nil if it is not known.
func wholeSeconds(d float64) *uint32 {
	if !(d > 0) || d > maxSeconds {
		return nil
	}
	return new(uint32(max(1, math.Round(d))))
}

func positive(n int) *uint32 {
	if n <= 0 || n > maxPixels {
		return nil
	}
	return new(uint32(n))
}

// flag returns nil for false, so that it is left out on the network.
func flag(on bool) *bool {
	if !on {
		return nil
	}
	return new(true)
}

// mediaFromWire returns a message with a file. It reports false if m carries none.
func mediaFromWire(m *waE2E.Message) (in Incoming, ok bool) {
	switch {
	case m.ImageMessage != nil:
		in = pictureFromWire(postern.KindImage, m.ImageMessage.GetCaption(), m.ImageMessage)
		in.Content.ViewOnce = m.ImageMessage.GetViewOnce()
	case m.VideoMessage != nil:
		in = videoFromWire(m.VideoMessage)
		in.Content.GIF = m.VideoMessage.GetGifPlayback()
	case m.PtvMessage != nil:
		in = videoFromWire(m.PtvMessage)
		in.Content.Round = true
	case m.AudioMessage != nil:
		in = audioFromWire(m.AudioMessage)
	case m.DocumentMessage != nil:
		in = withFile(postern.KindDocument, m.DocumentMessage.GetCaption(), m.DocumentMessage)
		in.Content.Media.Filename = filename(cmp.Or(m.DocumentMessage.GetFileName(), m.DocumentMessage.GetTitle()))
	case m.StickerMessage != nil:
		in = pictureFromWire(postern.KindSticker, "", m.StickerMessage)
	default:
		return in, false
	}
	return in, true
}

// withFile returns what all messages with a file have.
func withFile(kind postern.Kind, caption string, m described) Incoming {
	f := fileFromWire(ClassOf(kind), m)
	c := postern.Content{Kind: kind, Media: &postern.Media{
		MIMEType: mimeType(m.GetMimetype()), Size: f.Size, Status: postern.MediaPending,
	}}
	c.Text, c.Truncated = Cut(caption, postern.MaxText)
	return Incoming{Content: c, File: f.Ref()}
}

// picture is a file that is shown.
type picture interface {
	described
	GetWidth() uint32
	GetHeight() uint32
}

func pictureFromWire(kind postern.Kind, caption string, m picture) Incoming {
	in := withFile(kind, caption, m)
	if m.GetWidth() <= maxPixels && m.GetHeight() <= maxPixels {
		in.Content.Media.Width, in.Content.Media.Height = int(m.GetWidth()), int(m.GetHeight())
	}
	return in
}

func videoFromWire(m *waE2E.VideoMessage) Incoming {
	in := pictureFromWire(postern.KindVideo, m.GetCaption(), m)
	in.Content.ViewOnce, in.Content.Media.Duration = m.GetViewOnce(), declaredLength(m.GetSeconds())
	return in
}

func audioFromWire(m *waE2E.AudioMessage) Incoming {
	kind := postern.KindAudio
	if m.GetPTT() {
		kind = postern.KindVoice
	}
	in := withFile(kind, "", m)
	in.Content.ViewOnce, in.Content.Media.Duration = m.GetViewOnce(), declaredLength(m.GetSeconds())
	return in
}

// declaredLength returns the length that a sender declares, or 0 if no recording has it.
func declaredLength(seconds uint32) float64 {
	if seconds > maxSeconds {
		return 0
	}
	return float64(seconds)
}

// betterOf returns the network id of the picture or video that a message repeats in better quality,
// or "" if the message repeats nothing.
func betterOf(m *waE2E.Message) string {
	a := m.GetMessageContextInfo().GetMessageAssociation()
	switch a.GetAssociationType() {
	case waE2E.MessageAssociation_HD_IMAGE_DUAL_UPLOAD, waE2E.MessageAssociation_HD_VIDEO_DUAL_UPLOAD,
		waE2E.MessageAssociation_HEVC_VIDEO_DUAL_UPLOAD:
		return Clip(a.GetParentMessageKey().GetID(), maxID)
	default:
		return ""
	}
}
