package content

import (
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

const maxLink = 2048 // bytes of a link with a preview

// previewToWire adds a preview to a text. One without a title was not found, and is left out.
func previewToWire(m *waE2E.Message, p *postern.LinkPreview, picture []byte) *waE2E.Message {
	if p == nil || p.Title == "" {
		return m
	}
	text := m.ExtendedTextMessage
	if text == nil {
		text = &waE2E.ExtendedTextMessage{Text: m.Conversation}
	}
	text.MatchedText, text.Title, text.Description = &p.URL, &p.Title, optional(p.Description)
	text.PreviewType, text.JPEGThumbnail = waE2E.ExtendedTextMessage_NONE.Enum(), picture
	return &waE2E.Message{ExtendedTextMessage: text}
}

// previewFromWire returns the preview of a text, or nil if it has none.
func previewFromWire(m *waE2E.ExtendedTextMessage) *postern.LinkPreview {
	if m.GetMatchedText() == "" || m.GetTitle() == "" || len(m.GetMatchedText()) > maxLink {
		return nil
	}
	p := &postern.LinkPreview{URL: storable(m.GetMatchedText())}
	p.Title, _ = Cut(m.GetTitle(), postern.MaxPreviewTitle)
	p.Description, _ = Cut(m.GetDescription(), postern.MaxPreviewDescription)
	return p
}
