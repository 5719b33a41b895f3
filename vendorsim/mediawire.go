package vendorsim

import (
	"cmp"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

// mimeOf returns what phones write for a type of content, if the file is of no other.
func mimeOf(contentType string) string {
	switch contentType {
	case TypeImage:
		return "image/jpeg"
	case TypeVideo:
		return "video/mp4"
	case TypeAudio:
		return "audio/mpeg"
	case TypeVoice:
		return "audio/ogg; codecs=opus"
	case TypeSticker:
		return "image/webp"
	}
	return "application/octet-stream"
}

// mediaToWire returns the network's form of a message with a file.
func mediaToWire(c Content, info *waE2E.ContextInfo) *waE2E.Message {
	var msg *waE2E.Message
	switch c.Type {
	case TypeImage:
		msg = &waE2E.Message{ImageMessage: c.Media.image(c.Body, info)}
	case TypeVideo:
		msg = &waE2E.Message{VideoMessage: c.Media.video(c.Body, info)}
		if c.Media.Round {
			msg = &waE2E.Message{PtvMessage: msg.VideoMessage}
		}
	case TypeAudio, TypeVoice:
		msg = &waE2E.Message{AudioMessage: c.Media.audio(c.Type == TypeVoice, info)}
	case TypeSticker:
		msg = &waE2E.Message{StickerMessage: c.Media.sticker(info)}
	default:
		msg = &waE2E.Message{DocumentMessage: c.Media.document(c.Body, info)}
		if c.Body != "" {
			msg = &waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{Message: msg}}
		}
	}
	if !c.Media.ViewOnce {
		return msg
	}
	if msg.AudioMessage != nil {
		return &waE2E.Message{ViewOnceMessageV2Extension: &waE2E.FutureProofMessage{Message: msg}}
	}
	return &waE2E.Message{ViewOnceMessageV2: &waE2E.FutureProofMessage{Message: msg}}
}

func (m Media) image(caption string, info *waE2E.ContextInfo) *waE2E.ImageMessage {
	return &waE2E.ImageMessage{
		URL: m.url(), DirectPath: &m.Path, MediaKey: m.Key, FileSHA256: m.SHA256, FileEncSHA256: m.EncSHA256,
		FileLength: m.length(), MediaKeyTimestamp: timestamp(), Mimetype: &m.MimeType,
		Caption: nonEmpty(caption), Width: pixels(m.Width), Height: pixels(m.Height), ViewOnce: flag(m.ViewOnce),
		ContextInfo: info,
	}
}

func (m Media) video(caption string, info *waE2E.ContextInfo) *waE2E.VideoMessage {
	return &waE2E.VideoMessage{
		URL: m.url(), DirectPath: &m.Path, MediaKey: m.Key, FileSHA256: m.SHA256, FileEncSHA256: m.EncSHA256,
		FileLength: m.length(), MediaKeyTimestamp: timestamp(), Mimetype: &m.MimeType, JPEGThumbnail: m.Thumbnail,
		Caption: nonEmpty(caption), Width: pixels(m.Width), Height: pixels(m.Height), ViewOnce: flag(m.ViewOnce),
		Seconds: new(uint32(m.Seconds)), GifPlayback: flag(m.GIF), ContextInfo: info, //nolint:gosec // some hours
	}
}

func (m Media) audio(voice bool, info *waE2E.ContextInfo) *waE2E.AudioMessage {
	return &waE2E.AudioMessage{
		URL: m.url(), DirectPath: &m.Path, MediaKey: m.Key, FileSHA256: m.SHA256, FileEncSHA256: m.EncSHA256,
		FileLength: m.length(), MediaKeyTimestamp: timestamp(), Mimetype: &m.MimeType, PTT: flag(voice),
		Seconds: new(uint32(m.Seconds)), Waveform: m.Waveform, ViewOnce: flag(m.ViewOnce), //nolint:gosec // some hours
		ContextInfo: info,
	}
}

func (m Media) document(caption string, info *waE2E.ContextInfo) *waE2E.DocumentMessage {
	return &waE2E.DocumentMessage{
		URL: m.url(), DirectPath: &m.Path, MediaKey: m.Key, FileSHA256: m.SHA256, FileEncSHA256: m.EncSHA256,
		FileLength: m.length(), MediaKeyTimestamp: timestamp(), FileName: nonEmpty(m.FileName),
		Title: nonEmpty(m.FileName), Mimetype: &m.MimeType,
		Caption: nonEmpty(caption), ContextInfo: info,
	}
}

func (m Media) sticker(info *waE2E.ContextInfo) *waE2E.StickerMessage {
	return &waE2E.StickerMessage{
		URL: m.url(), DirectPath: &m.Path, MediaKey: m.Key, FileSHA256: m.SHA256, FileEncSHA256: m.EncSHA256,
		FileLength: m.length(), MediaKeyTimestamp: timestamp(), Mimetype: &m.MimeType,
		Width: pixels(m.Width), Height: pixels(m.Height), IsAnimated: flag(m.Animated), ContextInfo: info,
	}
}

// url returns where the file is. Clients use the path, with the host that they asked for.
func (m Media) url() *string { return new("https://" + pipeHost + m.Path) }

func (m Media) length() *uint64 { return new(uint64(max(m.Size, 0))) }

func timestamp() *int64 { return new(time.Now().Unix()) }

func pixels(n int) *uint32 {
	if n <= 0 {
		return nil
	}
	return new(uint32(n)) //nolint:gosec // a size of a picture
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func flag(on bool) *bool {
	if !on {
		return nil
	}
	return &on
}

// fileMessage is a message of the network with a file.
type fileMessage interface {
	GetMimetype() string
	GetDirectPath() string
	GetMediaKey() []byte
	GetFileSHA256() []byte
	GetFileEncSHA256() []byte
	GetFileLength() uint64
	GetContextInfo() *waE2E.ContextInfo
}

// fileContent returns content with what all messages with a file have.
func fileContent(contentType, caption string, m fileMessage) Content {
	return Content{Type: contentType, Body: caption, Media: &Media{
		MimeType: m.GetMimetype(), Size: int64(m.GetFileLength()), SHA256: m.GetFileSHA256(), //nolint:gosec // compared only
		Path: m.GetDirectPath(), Class: classOf(contentType), Key: m.GetMediaKey(), EncSHA256: m.GetFileEncSHA256(),
	}}.with(m.GetContextInfo())
}

// mediaOf returns the content of a message with a file; ok is false for other messages.
func mediaOf(msg *waE2E.Message) (c Content, ok bool) {
	switch {
	case msg.ImageMessage != nil:
		m := msg.ImageMessage
		c = fileContent(TypeImage, m.GetCaption(), m)
		c.Media.Width, c.Media.Height = int(m.GetWidth()), int(m.GetHeight())
		c.Media.ViewOnce = m.GetViewOnce()
	case msg.VideoMessage != nil:
		c = videoOf(msg.VideoMessage)
	case msg.PtvMessage != nil:
		c = videoOf(msg.PtvMessage)
		c.Media.Round = true
	case msg.AudioMessage != nil:
		c = audioOf(msg.AudioMessage)
	case msg.DocumentMessage != nil:
		m := msg.DocumentMessage
		c = fileContent(TypeDocument, m.GetCaption(), m)
		c.Media.FileName = cmp.Or(m.GetFileName(), m.GetTitle())
	case msg.StickerMessage != nil:
		m := msg.StickerMessage
		c = fileContent(TypeSticker, "", m)
		c.Media.Width, c.Media.Height = int(m.GetWidth()), int(m.GetHeight())
		c.Media.Animated = m.GetIsAnimated()
	default:
		return Content{}, false
	}
	return c, true
}

func videoOf(m *waE2E.VideoMessage) Content {
	c := fileContent(TypeVideo, m.GetCaption(), m)
	c.Media.Width, c.Media.Height = int(m.GetWidth()), int(m.GetHeight())
	c.Media.Seconds, c.Media.GIF, c.Media.ViewOnce = int(m.GetSeconds()), m.GetGifPlayback(), m.GetViewOnce()
	return c
}

func audioOf(m *waE2E.AudioMessage) Content {
	c := fileContent(TypeAudio, "", m)
	if m.GetPTT() {
		c.Type = TypeVoice
	}
	c.Media.Seconds, c.Media.Waveform, c.Media.ViewOnce = int(m.GetSeconds()), m.GetWaveform(), m.GetViewOnce()
	return c
}
