package whatsapp

import (
	"context"
	"strings"
	"unicode/utf8"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// message takes a message that was read.
func (v *visit) message(ctx context.Context, evt *events.Message) bool {
	kind, body, ok := content(evt.Message)
	if !ok || !isDirect(evt.Info.MessageSource) {
		return true
	}
	p, err := v.peer(ctx, evt.Info.MessageSource)
	if err != nil {
		return false
	}
	if p.isNobody() {
		return true
	}
	if v.keys.StartFlush(ctx) != nil {
		return false
	}
	if evt.Info.IsFromMe {
		return v.stores(ctx, network.Echo{
			NetworkID: clip(evt.Info.ID, maxID), ChatID: p.chat(), To: p.phone(),
			Type: kind, Body: body, At: evt.Info.Timestamp.UTC(),
		})
	}
	return v.stores(ctx, network.Inbound{
		NetworkID: clip(evt.Info.ID, maxID), Sender: p.sender(), ChatID: p.chat(), From: p.phone(), FromLID: p.lid,
		FromName: name(evt.Info.PushName), Type: kind, Body: body, At: evt.Info.Timestamp.UTC(),
	})
}

// undecryptable takes a message that could not be read, once per id. Some, such
// as edits, the vendor wants hidden.
func (v *visit) undecryptable(ctx context.Context, evt *events.UndecryptableMessage) bool {
	if !isDirect(evt.Info.MessageSource) || evt.Info.IsFromMe || evt.DecryptFailMode == events.DecryptFailHide || !v.firstTime(evt.Info.ID) {
		return true
	}
	p, err := v.peer(ctx, evt.Info.MessageSource)
	if err != nil {
		return false
	}
	if p.isNobody() {
		return true
	}
	return v.stores(ctx, network.Undecryptable{
		NetworkID: clip(evt.Info.ID, maxID), Sender: p.sender(), ChatID: p.chat(), From: p.phone(), FromLID: p.lid,
		At: evt.Info.Timestamp.UTC(),
	})
}

// firstTime tells whether an unreadable message is new on this connection.
func (v *visit) firstTime(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unreadable[id] {
		return false
	}
	if len(v.unreadable) >= maxUnreadable {
		clear(v.unreadable)
	}
	v.unreadable[id] = true
	return true
}

// receipt takes a contact's confirmation.
func (v *visit) receipt(ctx context.Context, evt *events.Receipt) bool {
	status, ok := confirmed(evt.Type)
	if !ok || evt.IsFromMe || !isDirect(evt.MessageSource) {
		return true
	}
	ids := make([]string, len(evt.MessageIDs))
	for i, id := range evt.MessageIDs {
		ids[i] = clip(id, maxID)
	}
	return v.stores(ctx, network.Receipt{NetworkIDs: ids, Status: status, At: evt.Timestamp.UTC()})
}

// confirmed says what a type of receipt means for a message that was sent.
func confirmed(kind types.ReceiptType) (postern.MessageStatus, bool) {
	switch kind {
	case types.ReceiptTypeDelivered:
		return postern.Delivered, true
	case types.ReceiptTypeRead, types.ReceiptTypePlayed:
		return postern.Read, true
	default: // of our own devices, or of the protocol
		return "", false
	}
}

// content says what a message is; false means that it is not for people.
func content(m *waE2E.Message) (kind, body string, ok bool) {
	switch {
	case m == nil || m.ProtocolMessage != nil:
		return "", "", false
	case m.Conversation != nil:
		return postern.TypeText, clip(m.GetConversation(), maxBody), true
	case m.ExtendedTextMessage != nil:
		return postern.TypeText, clip(m.GetExtendedTextMessage().GetText(), maxBody), true
	}
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		ok = !isCarrier(field.Name())
		return !ok
	})
	return postern.TypeUnsupported, "", ok
}

// isCarrier tells whether a part of a message only carries keys and context.
func isCarrier(part protoreflect.Name) bool {
	switch part {
	case "messageContextInfo", "senderKeyDistributionMessage", "fastRatchetKeySenderKeyDistributionMessage", "deviceSentMessage":
		return true
	}
	return false
}

// isDirect tells whether a stanza belongs to a chat with one person. Groups,
// broadcasts, newsletters and bots are acknowledged and left alone.
func isDirect(src types.MessageSource) bool {
	if src.IsGroup || src.Sender.IsBot() || src.Chat.IsBot() {
		return false
	}
	return src.Chat.Server == types.DefaultUserServer || src.Chat.Server == types.HiddenUserServer
}

// peer is the other side of a direct chat. Either name may be "".
type peer struct {
	number string // digits
	lid    string // digits
}

// peer finds the other side of a direct chat.
func (v *visit) peer(ctx context.Context, src types.MessageSource) (peer, error) {
	if src.IsFromMe {
		return v.resolve(ctx, src.Chat, src.RecipientAlt)
	}
	return v.resolve(ctx, src.Sender, src.SenderAlt)
}

// resolve completes the names of somebody from what is known.
func (v *visit) resolve(ctx context.Context, jid, alt types.JID) (peer, error) {
	var p peer
	p.add(jid)
	p.add(alt)
	lids := v.cli.Store.LIDs
	if p.number == "" && p.lid != "" {
		pn, err := lids.GetPNForLID(ctx, types.NewJID(p.lid, types.HiddenUserServer))
		if err != nil {
			return peer{}, hush("find a number", err)
		}
		p.add(pn)
	}
	if p.lid == "" && p.number != "" {
		lid, err := lids.GetLIDForPN(ctx, types.NewJID(p.number, types.DefaultUserServer))
		if err != nil {
			return peer{}, hush("find a LID", err)
		}
		p.add(lid)
	}
	return p, nil
}

func (p *peer) add(jid types.JID) {
	switch {
	case !isDigits(jid.User):
	case jid.Server == types.DefaultUserServer && p.number == "":
		p.number = jid.User
	case jid.Server == types.HiddenUserServer && p.lid == "":
		p.lid = jid.User
	}
}

func (p *peer) isNobody() bool { return p.number == "" && p.lid == "" }

// phone is the number with its "+", or "".
func (p *peer) phone() string {
	if p.number == "" {
		return ""
	}
	return "+" + p.number
}

func (p *peer) chat() string {
	if p.number == "" {
		return postern.ChatOfLID(p.lid)
	}
	return postern.ChatOfNumber(p.phone())
}

// sender is the most stable name: a LID stays when the number changes.
func (p *peer) sender() string {
	if p.lid == "" {
		return p.phone()
	}
	return postern.ChatOfLID(p.lid)
}

// names tells whether a chat id means this person.
func (p *peer) names(chat string) bool {
	return p.number != "" && chat == p.phone() || p.lid != "" && chat == postern.ChatOfLID(p.lid)
}

// isDigits tells whether s can be a number or a LID. "0" is the vendor itself.
func isDigits(s string) bool {
	if s == "" || len(s) > maxDigits || s == "0" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// clip makes s storable: valid UTF-8 without NUL, at most limit bytes, cut
// between runes.
func clip(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// name makes the name a contact gave itself storable. "-" stands for none.
func name(s string) string {
	if s == "-" {
		return ""
	}
	s = clip(s, maxName*utf8.UTFMax)
	for n, i := 0, 0; i < len(s); n++ {
		if n == maxName {
			return s[:i]
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s
}
