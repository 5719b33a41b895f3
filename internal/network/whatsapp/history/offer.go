// Package history reads what an account's phone tells of the time before the account was linked: messages, the names of
// people, and the tokens with which the account may write to them.
package history

import (
	"encoding/json"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

const (
	maxInline = 1 << 20          // bytes of a part that its offer contains
	maxFile   = postern.MaxMedia // bytes of a compressed part
	maxID     = 256              // bytes of the id of a message
	maxHandle = 4 << 10          // bytes with which a file is removed from the vendor
	keySize   = 32               // bytes of the key of a file, and of a hash
)

// Offer is where a part of the history is.
type Offer struct {
	Inline    []byte `json:"inline,omitempty"` // the part itself; then it is no file
	Path      string `json:"path,omitempty"`
	Key       []byte `json:"key,omitempty"`
	SHA256    []byte `json:"sha256,omitempty"`
	EncSHA256 []byte `json:"encSha256,omitempty"`
	Size      int64  `json:"size,omitempty"`
	Handle    string `json:"handle,omitempty"`
}

// Offered returns the offer in a message. Only the account's own phone offers its history; what others send is ignored, and
// so are parts without anything that is wanted, or that cannot be read.
func Offered(evt *events.Message) (u network.HistoryOffered, ok bool) {
	n := evt.Message.GetProtocolMessage().GetHistorySyncNotification()
	if n == nil || !evt.Info.IsFromMe || evt.Info.Sender.Device != 0 || !ownChat(evt.Info.MessageSource) {
		return u, false
	}
	extent, wanted := extents[n.GetSyncType()]
	o := Offer{Inline: n.GetInitialHistBootstrapInlinePayload()}
	if o.Inline == nil {
		o = fileOf(n)
	}
	raw, err := json.Marshal(o)
	if !wanted || !o.isComplete() || err != nil {
		return u, false
	}
	return network.HistoryOffered{NetworkID: content.Clip(evt.Info.ID, maxID), Ref: raw, Extent: extent}, true
}

// ownChat reports whether a message is from the account to itself.
func ownChat(src types.MessageSource) bool {
	return !src.IsGroup && (src.Chat.Server == types.DefaultUserServer || src.Chat.Server == types.HiddenUserServer)
}

// extents are the types of parts that are read.
//
//nolint:gochecknoglobals // a table
var extents = map[waE2E.HistorySyncType]network.HistoryExtent{
	waE2E.HistorySyncType_INITIAL_BOOTSTRAP: network.RecentHistory,
	waE2E.HistorySyncType_RECENT:            network.RecentHistory,
	waE2E.HistorySyncType_PUSH_NAME:         network.RecentHistory,
	waE2E.HistorySyncType_NON_BLOCKING_DATA: network.RecentHistory,
	waE2E.HistorySyncType_FULL:              network.OlderHistory,
	waE2E.HistorySyncType_ON_DEMAND:         network.AskedHistory,
}

func fileOf(n *waE2E.HistorySyncNotification) Offer {
	o := Offer{
		Path: n.GetDirectPath(), Key: n.GetMediaKey(), SHA256: n.GetFileSHA256(), EncSHA256: n.GetFileEncSHA256(),
		Size: maxFile + 1, Handle: n.GetEncHandle(),
	}
	if n.GetFileLength() <= maxFile {
		o.Size = int64(n.GetFileLength()) //nolint:gosec // compared
	}
	if len(o.Handle) > maxHandle {
		o.Handle = ""
	}
	return o
}

// isComplete reports whether an offer leads to a part that may be read.
func (o Offer) isComplete() bool {
	if o.Inline != nil {
		return len(o.Inline) <= maxInline
	}
	return content.IsPath(o.Path) && len(o.Key) == keySize && len(o.SHA256) == keySize && len(o.EncSHA256) == keySize &&
		o.Size <= maxFile
}

// ParseOffer reads an offer from the reference that [Offered] has returned.
func ParseOffer(ref network.Ref) (o Offer, ok bool) {
	err := json.Unmarshal(ref, &o)
	return o, err == nil && o.isComplete()
}

// Request returns the question to the phone for older messages of a chat.
func Request(chat types.JID, q network.HistoryRequest) *waE2E.Message {
	return &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_PEER_DATA_OPERATION_REQUEST_MESSAGE.Enum(),
		PeerDataOperationRequestMessage: &waE2E.PeerDataOperationRequestMessage{
			PeerDataOperationRequestType: waE2E.PeerDataOperationRequestType_HISTORY_SYNC_ON_DEMAND.Enum(),
			HistorySyncOnDemandRequest: &waE2E.PeerDataOperationRequestMessage_HistorySyncOnDemandRequest{
				ChatJID: proto.String(chat.String()), OldestMsgID: &q.NetworkID, OldestMsgFromMe: &q.FromMe,
				OnDemandMsgCount:     proto.Int32(int32(q.Count)), //nolint:gosec // at most 50
				OldestMsgTimestampMS: proto.Int64(q.At.Unix()),    // seconds, in spite of its name
			},
		},
	}}
}

// StatusOf returns how far a message of the account has come.
func StatusOf(web *waWeb.WebMessageInfo) postern.MessageStatus {
	switch web.GetStatus() {
	case waWeb.WebMessageInfo_DELIVERY_ACK:
		return postern.Delivered
	case waWeb.WebMessageInfo_READ:
		return postern.Read
	case waWeb.WebMessageInfo_PLAYED:
		return postern.Played
	case waWeb.WebMessageInfo_ERROR, waWeb.WebMessageInfo_PENDING, waWeb.WebMessageInfo_SERVER_ACK:
	}
	return postern.Sent
}

// Sane returns at, or now if at cannot be a time of the past.
func Sane(at, now time.Time) time.Time {
	if at.Unix() <= 0 || at.After(now) {
		return now
	}
	return at
}
