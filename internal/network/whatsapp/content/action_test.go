package content_test

import (
	"strings"
	"testing"

	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
)

// An edit carries what belongs to its text.
func TestEditsCarryMentionsAndPreviews(t *testing.T) {
	in, ok := content.FromWire(&waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), Key: &waCommon.MessageKey{ID: new("A")},
		EditedMessage: &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
			Text:        new("@123456789012345: https://example.com " + strings.Repeat("x", postern.MaxText)),
			MatchedText: new("https://example.com"), Title: new("Example"),
			ContextInfo: &waE2E.ContextInfo{MentionedJID: []string{"123456789012345@lid"}},
		}},
	}})
	c := in.Content
	c.Text = ""
	if !ok || in.About != "A" || c.Kind != postern.KindEdit || !c.Truncated ||
		len(c.Mentions) != 1 || c.Mentions[0] != "lid:123456789012345" ||
		c.LinkPreview == nil || c.LinkPreview.Title != "Example" {
		t.Errorf("the edit is %v, %s, %+v, %+v", ok, in.About, c, c.LinkPreview)
	}
}
