package vendorsim

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

const (
	// maxInline is the size of the largest part of a history that its notification contains, in bytes. Larger ones are
	// files.
	maxInline = 2 << 10
	// maxPart is how many messages a part of a history has at most.
	maxPart = 5_000
	// maxAsked is how many messages a phone sends when a companion asks for more.
	maxAsked = 50
)

// Past is a message that a phone had before a companion was linked.
type Past struct {
	ID    string // on the network; "" for a new one
	From  string // who wrote it
	To    string // to whom, if the owner of the phone wrote it; "" in a group
	Group string // id of the group; "" in a direct chat
	Content
	At time.Time
}

// archive is what a phone remembers from before its companions were linked, oldest first.
type archive struct {
	list     []pastMessage
	withheld bool // companions get nothing of it
	depth    int  // messages of each chat that a new companion gets; 0: all
}

// pastMessage is a message of an archive in the network's form.
type pastMessage struct {
	chat types.JID
	peer number // the other person of a direct chat
	info *waWeb.WebMessageInfo
}

func (m pastMessage) at() uint64 { return m.info.GetMessageTimestamp() }

// archive returns what the phone of a number remembers. The caller holds v.mu.
func (v histories) archive(n number) *archive {
	a := v.archives[n]
	if a == nil {
		a = &archive{}
		v.archives[n] = a
	}
	return a
}

// Remember adds messages to what the phone of a number has from before companions were linked. A companion gets them
// when it is linked, with [Vendor.SyncHistory], or when it asks. They are lost when the Vendor is closed.
func (v *Vendor) Remember(num string, list []Past) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	made := make([]pastMessage, len(list))
	for i, p := range list {
		if made[i], err = v.histories.remembered(n, p); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.histories.archive(n)
	a.list = append(a.list, made...)
	slices.SortStableFunc(a.list, func(x, y pastMessage) int { return cmp.Compare(x.at(), y.at()) })
	return nil
}

// remembered returns the network's form of a message.
func (v histories) remembered(n number, p Past) (m pastMessage, err error) {
	from, err := knownNumber(p.From)
	if err != nil {
		return m, err
	}
	mine := from == n
	switch {
	case p.Group != "":
		m.chat = types.NewJID(p.Group, types.GroupServer)
	case mine:
		if m.peer, err = knownNumber(p.To); err != nil {
			return m, err
		}
		m.chat = m.peer.lid()
	default:
		m.peer, m.chat = from, from.lid()
	}
	c, err := v.messages.compose(from, n, p.Content)
	if err != nil {
		return m, err
	}
	msg := c.message()
	m.info = &waWeb.WebMessageInfo{
		Key: &waCommon.MessageKey{
			RemoteJID: new(m.chat.String()), FromMe: &mine, ID: new(cmp.Or(p.ID, newMessageID())),
		},
		Message: msg, MessageTimestamp: new(uint64(max(p.At.Unix(), 0))), //nolint:gosec // not negative
		MessageSecret: msg.GetMessageContextInfo().GetMessageSecret(),
	}
	if mine {
		m.info.Status = waWeb.WebMessageInfo_READ.Enum()
	} else {
		m.info.PushName = new(from.name())
	}
	if p.Group != "" && !mine {
		m.info.Participant, m.info.Key.Participant = new(from.lid().String()), new(from.lid().String())
	}
	return m, nil
}

// WithholdHistory keeps the phone of a number from sending its history to companions, with the tokens that are part of
// it.
func (v *Vendor) WithholdHistory(num string) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.histories.archive(n).withheld = true
	return nil
}

// SetHistoryDepth bounds how many messages of each chat a companion of a number gets without asking; 0 means all.
func (v *Vendor) SetHistoryDepth(num string, messages int) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.histories.archive(n).depth = messages
	return nil
}

// SyncHistory lets the phone of a linked account send its history to all companions again, as phones do after they were
// restored.
func (v *Vendor) SyncHistory(ctx context.Context, account string) error {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	v.mu.Lock()
	companions := v.devices.companionsOf(n)
	v.mu.Unlock()
	for _, cp := range companions {
		if err := v.histories.send(ctx, cp); err != nil {
			return err
		}
	}
	return v.flush()
}

// welcome sends the history to a companion at its first login. The phone of an account without history sends its salt.
func (v histories) welcome(ctx context.Context, cp *companion) {
	if err := v.send(ctx, cp); err != nil {
		v.log.WarnContext(ctx, "send the history", "account", cp.account.number, "error", err)
	}
}

func (v histories) send(ctx context.Context, cp *companion) error {
	v.mu.Lock()
	a := *v.archive(cp.account.number)
	list := newestOf(slices.Clone(a.list), a.depth)
	v.mu.Unlock()
	if a.withheld {
		return nil
	}
	kind := waHistorySync.HistorySync_INITIAL_BOOTSTRAP
	for order := uint32(1); ; order++ {
		part := list[max(len(list)-maxPart, 0):]
		list = list[:len(list)-len(part)]
		if err := v.sendPart(ctx, cp, kind, order, part, ""); err != nil || len(list) == 0 {
			return err
		}
		kind = waHistorySync.HistorySync_RECENT
	}
}

// newestOf returns the newest messages of each chat, at most depth of each; 0 returns all.
func newestOf(list []pastMessage, depth int) []pastMessage {
	if depth == 0 {
		return list
	}
	count := map[types.JID]int{}
	slices.Reverse(list)
	list = slices.DeleteFunc(list, func(m pastMessage) bool {
		count[m.chat]++
		return count[m.chat] > depth
	})
	slices.Reverse(list)
	return list
}

// sendPart queues a part of the history for a companion. request is the id of what it answers; "" for none.
func (v histories) sendPart(
	ctx context.Context, cp *companion, kind waHistorySync.HistorySync_HistorySyncType, order uint32, part []pastMessage,
	request string,
) error {
	whole, err := v.encode(cp.account.number, kind, part)
	if err != nil {
		return err
	}
	notice, err := v.offer(cp.account.number, whole)
	if err != nil {
		return err
	}
	notice.SyncType = waE2E.HistorySyncType(kind).Enum()
	notice.ChunkOrder, notice.Progress = &order, new(uint32(100))
	if request != "" {
		notice.PeerDataRequestSessionID = &request
	}
	return v.messages.toCompanion(ctx, cp, historyNotice(notice))
}

func historyNotice(n *waE2E.HistorySyncNotification) *waE2E.Message {
	return &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(), HistorySyncNotification: n,
	}}
}

// encode returns a part of the history in compressed form. As on real phones, the messages of a chat begin with the
// newest one.
func (v histories) encode(
	n number, kind waHistorySync.HistorySync_HistorySyncType, part []pastMessage,
) ([]byte, error) {
	h := &waHistorySync.HistorySync{SyncType: &kind}
	var err error
	if h.NctSalt, err = v.salt(n); err != nil {
		return nil, err
	}
	chats := map[types.JID]*waHistorySync.Conversation{}
	for _, m := range slices.Backward(part) {
		c := chats[m.chat]
		if c == nil {
			c = &waHistorySync.Conversation{ID: new(m.chat.String())}
			chats[m.chat] = c
			h.Conversations = append(h.Conversations, c)
			if m.peer != "" {
				h.PhoneNumberToLidMappings = append(h.PhoneNumberToLidMappings, &waHistorySync.PhoneNumberToLIDMapping{
					PnJID: new(m.peer.pn().String()), LidJID: new(m.peer.lid().String()),
				})
			}
		}
		if m.peer != "" && c.TcToken == nil && !m.info.GetKey().GetFromMe() {
			c.TcToken, c.TcTokenTimestamp = v.grant(m.peer, n), new(uint64(now().Unix())) //nolint:gosec // not negative
		}
		m.addTimer(c)
		c.Messages = append(c.Messages, &waHistorySync.HistorySyncMsg{Message: m.info})
	}
	raw, err := proto.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode a history: %w", err)
	}
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, err = z.Write(raw)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// addTimer adds the timer that a message sets to its chat, unless a later message has set one.
func (m pastMessage) addTimer(c *waHistorySync.Conversation) {
	p := m.info.GetMessage().GetProtocolMessage()
	if p.GetType() == waE2E.ProtocolMessage_EPHEMERAL_SETTING && c.EphemeralExpiration == nil {
		c.EphemeralExpiration, c.EphemeralSettingTimestamp = p.EphemeralExpiration, p.EphemeralSettingTimestamp
	}
}

// offer returns the notification of a part: with the part, if it is small, or with the file that has it.
func (v histories) offer(n number, compressed []byte) (*waE2E.HistorySyncNotification, error) {
	if len(compressed) <= maxInline {
		return &waE2E.HistorySyncNotification{InitialHistBootstrapInlinePayload: compressed}, nil
	}
	d, err := v.blobs.create()
	if err != nil {
		return nil, err
	}
	m, err := encryptFile(d, bytes.NewReader(compressed), classHistory)
	if err != nil {
		d.discard()
		return nil, err
	}
	one, err := d.keep(n)
	if err != nil {
		return nil, err
	}
	return &waE2E.HistorySyncNotification{
		DirectPath: new(one.path()), MediaKey: m.Key, FileSHA256: m.SHA256, FileEncSHA256: m.EncSHA256, FileLength: m.length(),
	}, nil
}

// UploadHistory stores what an account's phone claims to be a part of its history, which is a compressed HistorySync, and
// returns the notification of it, without a type. Tests may change it, and pass it to [Vendor.AnnounceHistory].
func (v *Vendor) UploadHistory(account string, compressed []byte) (*waE2E.HistorySyncNotification, error) {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return nil, err
	}
	return v.histories.offer(n, compressed)
}

// AnnounceHistory lets the phone of a linked account send a notification of its history to all companions.
func (v *Vendor) AnnounceHistory(ctx context.Context, account string, n *waE2E.HistorySyncNotification) error {
	num, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	v.mu.Lock()
	companions := v.devices.companionsOf(num)
	v.mu.Unlock()
	for _, cp := range companions {
		if err := v.messages.toCompanion(ctx, cp, historyNotice(n)); err != nil {
			return err
		}
	}
	return v.flush()
}

// asked answers a companion that asks its phone for older messages of a chat.
func (v histories) asked(ctx context.Context, cp *companion, id string, msg *waE2E.Message) {
	q := msg.GetProtocolMessage().GetPeerDataOperationRequestMessage().GetHistorySyncOnDemandRequest()
	if q == nil {
		return
	}
	v.mu.Lock()
	a := v.archive(cp.account.number)
	part := a.before(q)
	withheld := a.withheld
	v.mu.Unlock()
	if withheld {
		return
	}
	if err := v.sendPart(ctx, cp, waHistorySync.HistorySync_ON_DEMAND, 1, part, id); err != nil {
		v.log.WarnContext(ctx, "send the history", "account", cp.account.number, "error", err)
	}
}

// before returns the messages of a chat before the one that a request names.
func (a *archive) before(q *waE2E.PeerDataOperationRequestMessage_HistorySyncOnDemandRequest) []pastMessage {
	chat, err := types.ParseJID(q.GetChatJID())
	if n, ok := numberOf(chat); err == nil && ok {
		chat = n.lid()
	}
	var list []pastMessage
	for _, m := range a.list {
		switch {
		case m.chat != chat:
		case m.info.GetKey().GetID() == q.GetOldestMsgID():
			return newest(list, q)
		case m.at() <= uint64(max(q.GetOldestMsgTimestampMS(), 0)): //nolint:gosec // not negative
			list = append(list, m)
		}
	}
	return newest(list, q)
}

func newest(
	list []pastMessage, q *waE2E.PeerDataOperationRequestMessage_HistorySyncOnDemandRequest,
) []pastMessage {
	count := min(int(max(q.GetOnDemandMsgCount(), 0)), maxAsked)
	return list[max(len(list)-count, 0):]
}
