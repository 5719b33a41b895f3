package whatsapp

import (
	"context"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// message reports a message that was decrypted.
func (v *run) message(ctx context.Context, evt *events.Message) bool {
	in, ok := content.FromWire(evt.Message)
	if !ok || !isDirect(evt.Info.MessageSource) {
		return true
	}
	p, err := v.peer(ctx, evt.Info.MessageSource)
	if err != nil {
		return false
	}
	if p.isEmpty() {
		return true
	}
	if v.keys.StartFlush(ctx) != nil {
		return false
	}
	if evt.Info.IsFromMe {
		return v.stores(ctx, network.Echo{
			NetworkID: content.Clip(evt.Info.ID, maxID), ChatID: p.chat(), To: p.phone(),
			Content: in.Content, QuoteOf: in.QuoteOf, At: evt.Info.Timestamp.UTC(),
		})
	}
	return v.stores(ctx, network.Inbound{
		NetworkID: content.Clip(evt.Info.ID, maxID), Sender: p.sender(), ChatID: p.chat(), From: p.phone(), FromLID: p.lid,
		FromName: content.Name(evt.Info.PushName), Content: in.Content, QuoteOf: in.QuoteOf,
		At: evt.Info.Timestamp.UTC(),
	})
}

// undecryptable reports a message that could not be decrypted, once per id. The
// vendor marks some of them, such as edits, as not worth showing.
func (v *run) undecryptable(ctx context.Context, evt *events.UndecryptableMessage) bool {
	hidden := evt.Info.IsFromMe || evt.DecryptFailMode == events.DecryptFailHide
	if hidden || !isDirect(evt.Info.MessageSource) || !v.firstTime(evt.Info.ID) {
		return true
	}
	return v.storeUnread(ctx, evt.Info.MessageSource, network.Undecryptable{
		NetworkID: content.Clip(evt.Info.ID, maxID), Why: postern.DecryptionFailed, At: evt.Info.Timestamp.UTC(),
	})
}

// firstTime reports whether an undecryptable message is new on this connection.
func (v *run) firstTime(id string) bool {
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

// receipt reports a contact's confirmation.
func (v *run) receipt(ctx context.Context, evt *events.Receipt) bool {
	status, ok := confirmed(evt.Type)
	if !ok || evt.IsFromMe || !isDirect(evt.MessageSource) {
		return true
	}
	p, err := v.peer(ctx, evt.MessageSource)
	if err != nil {
		return false
	}
	ids := make([]string, len(evt.MessageIDs))
	for i, id := range evt.MessageIDs {
		ids[i] = content.Clip(id, maxID)
	}
	return v.stores(ctx, network.Receipt{NetworkIDs: ids, Chats: p.chats(), Status: status, At: evt.Timestamp.UTC()})
}

// confirmed returns the status that a type of receipt gives to a sent message.
func confirmed(kind types.ReceiptType) (postern.MessageStatus, bool) {
	switch kind {
	case types.ReceiptTypeDelivered:
		return postern.Delivered, true
	case types.ReceiptTypeRead, types.ReceiptTypePlayed:
		return postern.Read, true
	default: // from our own devices, or for the protocol
		return "", false
	}
}

// isDirect reports whether a stanza belongs to a chat with one person. Groups,
// broadcasts, newsletters and bots are acknowledged and ignored.
func isDirect(src types.MessageSource) bool {
	if src.IsGroup || src.Sender.IsBot() || src.Chat.IsBot() {
		return false
	}
	return src.Chat.Server == types.DefaultUserServer || src.Chat.Server == types.HiddenUserServer
}
