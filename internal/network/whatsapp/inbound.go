package whatsapp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/network/whatsapp/history"
	"postern/internal/network/whatsapp/state"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

// message reports a message that was decrypted.
func (v *run) message(ctx context.Context, evt *events.Message) bool {
	in, ok := v.read(ctx, evt)
	in.Content = content.Renamed(in.Content, v.number(ctx))
	timer, timed := content.TimerOf(evt.Message, evt.Info.Timestamp.UTC())
	id, sent := content.Clip(evt.Info.ID, maxID), evt.Info.Timestamp.UTC()
	if isOfChannel(evt.Info.MessageSource) {
		in, id, sent = post(evt, in, id, sent)
	}
	timed = timed && !isPosted(evt.Info.MessageSource) && !evt.Info.Chat.IsBroadcastList()
	if !ok && !timed || !isOfChat(evt.Info.MessageSource) {
		return true
	}
	at, known, err := v.place(ctx, evt.Info.MessageSource)
	if err != nil {
		return false
	}
	if !known {
		return true
	}
	if timed && !v.disappears(ctx, at.chat, timer) {
		return false
	}
	if !ok {
		return true
	}
	if v.keys.StartFlush(ctx) != nil {
		return false
	}
	if evt.Info.IsFromMe {
		return v.stores(ctx, network.Echo{
			NetworkID: id, Companion: evt.Info.Sender.Device != 0, ChatID: at.chat, To: at.to(),
			Content: in.Content, File: in.File, QuoteOf: in.QuoteOf, About: in.About, BetterOf: in.BetterOf,
			At: sent, Arrived: v.flight.arrived(evt.Info.ID),
		})
	}
	return v.stores(ctx, network.Inbound{
		NetworkID: id, Sender: at.sender(), ChatID: at.chat, From: at.who.phone(), FromLID: at.who.lid,
		FromName: content.Name(evt.Info.PushName), BusinessName: businessName(evt.Info.VerifiedName), Content: in.Content, File: in.File,
		QuoteOf: in.QuoteOf, About: in.About, BetterOf: in.BetterOf, At: sent,
		Arrived: v.flight.arrived(evt.Info.ID),
	})
}

// post returns a post of a channel. If it is a new text of an earlier one, which the network sends under the id of that
// one, it returns an action with an id and a time of its own.
func post(
	evt *events.Message, in content.Incoming, id string, at time.Time,
) (_ content.Incoming, networkID string, sent time.Time) {
	if evt.NewsletterMeta == nil || evt.NewsletterMeta.EditTS.Unix() <= 0 {
		in.File = content.Posted(in.File)
		return in, id, at
	}
	sent = evt.NewsletterMeta.EditTS.UTC()
	return content.Incoming{Content: content.EditOf(in.Content), About: id},
		content.Clip(id+"-"+strconv.FormatInt(sent.UnixMilli(), 10), maxID), sane(sent, time.Now().UTC())
}

// businessName returns the name of a business that the vendor has verified; "" for a person.
func businessName(v *types.VerifiedName) string {
	if v == nil {
		return ""
	}
	return content.Name(v.Details.GetVerifiedName())
}

// call reports that a contact calls. The network may announce one call several times.
func (v *run) call(ctx context.Context, meta types.BasicCallMeta, c postern.Call) bool {
	p, err := v.resolve(ctx, meta.CallCreator, meta.CallCreatorAlt)
	if err != nil {
		return false
	}
	own := v.session.account.User == p.number && p.number != "" || v.cli.Store.GetLID().User == p.lid && p.lid != ""
	if p.isEmpty() || own || meta.CallID == "" {
		return true
	}
	at := sane(meta.Timestamp.UTC(), time.Now().UTC())
	return v.stores(ctx, network.Inbound{
		NetworkID: content.Clip(meta.CallID, maxID), Sender: p.sender(), ChatID: p.chat(), From: p.phone(), FromLID: p.lid,
		Content: postern.Content{Kind: postern.KindCall, ReceivedOnly: postern.ReceivedOnly{Call: &c}}, At: at,
	})
}

// disappears reports the timer of a chat, unless this connection has reported it before.
func (v *run) disappears(ctx context.Context, chat string, t network.Timer) bool {
	v.mu.Lock()
	same := v.timers[chat] == t
	v.mu.Unlock()
	if same {
		return true
	}
	if !v.stores(ctx, network.Disappearing{ChatID: chat, Timer: t}) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.timers) >= maxTimers {
		clear(v.timers)
	}
	v.timers[chat] = t
	return true
}

// read returns what a message says, after opening what it seals with the secret of another
// message. What cannot be opened is a message of an unknown kind.
func (v *run) read(ctx context.Context, evt *events.Message) (content.Incoming, bool) {
	switch m := evt.Message; {
	case m.GetPollUpdateMessage() != nil:
		vote, err := opened(evt, func() (*waE2E.PollVoteMessage, error) { return v.cli.DecryptPollVote(ctx, evt) })
		if err == nil {
			return content.Vote(m.PollUpdateMessage.GetPollCreationMessageKey(), vote), true
		}
	case m.GetSecretEncryptedMessage() != nil:
		inner, err := opened(evt, func() (*waE2E.Message, error) { return v.cli.DecryptSecretEncryptedMessage(ctx, evt) })
		if err == nil {
			return content.FromWire(inner)
		}
	case m.GetEncReactionMessage() != nil:
		r, err := opened(evt, func() (*waE2E.ReactionMessage, error) { return v.cli.DecryptReaction(ctx, evt) })
		if err == nil {
			r.Key = m.EncReactionMessage.GetTargetMessageKey()
			return content.FromWire(&waE2E.Message{ReactionMessage: r})
		}
	}
	in, ok := content.FromWire(evt.Message)
	if evt.IsViewOnce && in.Content.Media != nil { // whatsmeow has removed the wrapper
		in.Content.ViewOnce = true
	}
	return in, ok
}

// number returns what gives people their numbers, as far as they are known: messages in groups mention hidden numbers.
func (c *conn) number(ctx context.Context) func(who string) string {
	return func(who string) string {
		lid, ok := strings.CutPrefix(who, "lid:")
		if !ok {
			return who
		}
		if lid == c.cli.Store.GetLID().User {
			return "+" + c.cli.Store.GetJID().User
		}
		pn, err := c.cli.Store.LIDs.GetPNForLID(ctx, types.NewJID(lid, types.HiddenUserServer))
		if err != nil || pn.IsEmpty() {
			return who
		}
		return "+" + pn.User
	}
}

// opened opens what a message seals. The writer may have sealed it under the other of its two
// names, which whatsmeow does not try.
func opened[T any](evt *events.Message, open func() (T, error)) (T, error) {
	inner, err := open()
	if err != nil && !evt.Info.SenderAlt.IsEmpty() {
		sender := evt.Info.Sender
		evt.Info.Sender = evt.Info.SenderAlt.ToNonAD()
		inner, err = open()
		evt.Info.Sender = sender
	}
	return inner, err
}

// undecryptable reports a message that could not be decrypted, once per id. The
// vendor marks some of them, such as edits, as not worth showing.
func (v *run) undecryptable(ctx context.Context, evt *events.UndecryptableMessage) bool {
	hidden := evt.Info.IsFromMe || evt.DecryptFailMode == events.DecryptFailHide
	if hidden || !isOfChat(evt.Info.MessageSource) || !v.firstTime(evt.Info.ID) {
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

// receipt reports a contact's confirmation, or what the account has read elsewhere.
func (v *run) receipt(ctx context.Context, evt *events.Receipt) bool {
	status, ok := confirmed(evt.Type)
	ok = ok && !evt.IsFromMe || evt.IsFromMe && isReading(evt.Type)
	if !ok || !isOfChat(evt.MessageSource) || isPosted(evt.MessageSource) { // who saw a post is not recorded
		return true
	}
	at, known, err := v.place(ctx, evt.MessageSource)
	if err != nil {
		return false
	}
	if !known {
		return true
	}
	ids := make([]string, len(evt.MessageIDs))
	for i, id := range evt.MessageIDs {
		ids[i] = content.Clip(id, maxID)
	}
	if evt.IsFromMe {
		return v.stores(ctx, network.ReadElsewhere{ChatID: at.chat, NetworkIDs: ids})
	}
	r := network.Receipt{NetworkIDs: ids, Chats: at.who.chats(), Status: status, At: evt.Timestamp.UTC()}
	if isOfGroup(evt.MessageSource) {
		r.Chats, r.Member, r.Number = []string{at.chat}, at.who.sender(), at.who.phone()
	}
	return v.stores(ctx, r)
}

// confirmed returns the status that a type of receipt gives to a sent message.
func confirmed(kind types.ReceiptType) (postern.MessageStatus, bool) {
	switch kind {
	case types.ReceiptTypeDelivered:
		return postern.Delivered, true
	case types.ReceiptTypeRead:
		return postern.Read, true
	case types.ReceiptTypePlayed:
		return postern.Played, true
	default: // from our own devices, or for the protocol
		return "", false
	}
}

// isReading reports whether a receipt of the account itself says that it has read messages.
func isReading(kind types.ReceiptType) bool {
	switch kind {
	case types.ReceiptTypeRead, types.ReceiptTypeReadSelf, types.ReceiptTypePlayed, types.ReceiptTypePlayedSelf:
		return true
	default:
		return false
	}
}

// isOfChat reports whether a stanza belongs to a chat with one person, to a group or to a channel, or to status posts.
// Bots and broadcast lists of the account itself are acknowledged and ignored.
func isOfChat(src types.MessageSource) bool {
	return isDirect(src) || isOfGroup(src) || isPosted(src)
}

// isPosted reports whether a stanza belongs to a channel or to status posts.
func isPosted(src types.MessageSource) bool { return isOfChannel(src) || isStatus(src) }

// isStatus reports whether a stanza belongs to status posts.
func isStatus(src types.MessageSource) bool {
	return src.Chat == types.StatusBroadcastJID && !src.Sender.IsBot()
}

// isOfChannel reports whether a stanza belongs to a channel.
func isOfChannel(src types.MessageSource) bool { return src.Chat.Server == types.NewsletterServer }

// isOfGroup reports whether a stanza belongs to a group.
func isOfGroup(src types.MessageSource) bool {
	return src.Chat.Server == types.GroupServer && !src.Sender.IsBot()
}

// isDirect reports whether a stanza belongs to a chat with one person. What a person sends through a broadcast list
// appears in the chat with that person (types.MessageSource.IsIncomingBroadcast in whatsmeow).
func isDirect(src types.MessageSource) bool {
	if src.Chat.IsBroadcastList() {
		return !src.IsFromMe && !src.Sender.IsBot()
	}
	if src.IsGroup || src.Sender.IsBot() || src.Chat.IsBot() {
		return false
	}
	return src.Chat.Server == types.DefaultUserServer || src.Chat.Server == types.HiddenUserServer
}

// storeShared stores the app state keys that the phone shares in a message, which
// is acknowledged next. whatsmeow stores them too, but does not wait for it. What can
// be read with the keys is read next.
func (v *run) storeShared(ctx context.Context, evt *events.Message) bool {
	share := evt.Message.GetProtocolMessage().GetAppStateSyncKeyShare()
	if share == nil || !evt.Info.IsFromMe {
		return true
	}
	for _, key := range share.GetKeys() {
		fingerprint, err := proto.Marshal(key.GetKeyData().GetFingerprint())
		if err != nil {
			continue // whatsmeow skips it too
		}
		err = v.cli.Store.AppStateKeys.PutAppStateSyncKey(ctx, key.GetKeyID().GetKeyID(), store.AppStateSyncKey{
			Data: key.GetKeyData().GetKeyData(), Fingerprint: fingerprint, Timestamp: key.GetKeyData().GetTimestamp(),
		})
		if err != nil {
			return false
		}
	}
	v.sync(state.Settings) //nolint:contextcheck // the connection's
	v.sync(state.Stars)    //nolint:contextcheck // the connection's
	v.sync(state.Chats)    //nolint:contextcheck // the connection's
	v.sync(state.Labels)   //nolint:contextcheck // the connection's
	v.sync(state.Contacts) //nolint:contextcheck // the connection's
	return true
}

// historyOffered reports that the phone offers a part of its history.
func (v *run) historyOffered(ctx context.Context, evt *events.Message) bool {
	u, ok := history.Offered(evt)
	return !ok || v.stores(ctx, u)
}

// sawNotice sees a stanza, and reads what the vendor announces of the app state.
func (v *run) sawNotice(node *waBinary.Node) {
	if kind, _ := node.Attrs["type"].(string); node.Tag != "notification" || kind != "server_sync" {
		return
	}
	for _, c := range node.GetChildrenByTag("collection") {
		switch name := appstate.WAPatchName(c.AttrGetter().OptionalString("name")); name {
		case state.Stars, state.Settings, state.Chats, state.Labels, state.Contacts:
			v.sync(name)
		default: // nothing of ours
		}
	}
}

// sync reads what has changed in a collection, in the background, and again later if that fails. It does nothing if
// that is about to happen anyway.
func (v *run) sync(name appstate.WAPatchName) {
	if !v.willSync(name) || !v.calls.Enter() {
		return
	}
	go func() {
		defer v.calls.Leave()
		ctx := v.cli.BackgroundEventCtx
		for wait := syncAgain; !v.synced(ctx, name); wait = min(2*wait, syncAgainMost) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if !v.willSync(name) {
				return
			}
		}
	}()
}

// willSync reports whether the caller is to read a collection, because nobody else is about to.
func (v *run) willSync(name appstate.WAPatchName) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	waits := v.syncing[name]
	v.syncing[name] = true
	return !waits
}

// synced reads what has changed in a collection. It returns false if another attempt may succeed.
func (v *run) synced(ctx context.Context, name appstate.WAPatchName) bool {
	begun := sync.OnceFunc(func() { // what is announced from now on is read once more
		v.mu.Lock()
		defer v.mu.Unlock()
		v.syncing[name] = false
	})
	defer begun()
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	err := v.state.Sync(bounded, name, begun)
	if err == nil || ctx.Err() != nil {
		return true
	}
	v.log.WarnContext(ctx, "the app state was not read", "collection", string(name), "error", redact("read", err))
	if errors.Is(err, state.ErrNotStored) {
		v.end(disconnected("store-unavailable")) // the next connection reads it again
		return true
	}
	return errors.Is(err, state.ErrNoKey) || errors.Is(err, state.ErrUnreadable)
}

// stateChanged reports what the account has set: stars, its name, what it has set for chats, its labels, and its address
// book.
func (v *run) stateChanged(ctx context.Context, evts []any) bool {
	var list []network.ChatSetting
	for _, evt := range evts {
		ok := true
		switch evt := evt.(type) {
		case *events.Star:
			ok = v.starred(ctx, evt)
		case *events.MarkChatAsRead:
			ok = !evt.Action.GetRead() || v.setting(ctx, evt.JID, network.ChatSetting{ReadUntil: readUntil(evt)}, &list)
		case *events.Archive:
			ok = v.setting(ctx, evt.JID, network.ChatSetting{Archived: new(evt.Action.GetArchived())}, &list)
		case *events.Mute:
			ok = v.setting(ctx, evt.JID, network.ChatSetting{MutedUntil: new(mutedUntil(evt))}, &list)
		case postern.LabelChanges:
			ok = v.labeled(ctx, evt)
		case postern.AddressBook:
			ok = v.stores(ctx, network.AddressBook{AddressBook: evt})
		case *events.PushNameSetting:
			ok = v.renamed(ctx, evt.Action.GetName())
		}
		if !ok {
			return false
		}
	}
	for part := range slices.Chunk(list, settingsAtOnce) {
		if !v.stores(ctx, network.ChatsSet{Chats: part}) {
			return false
		}
	}
	return true
}

// labeled reports labels, and the chats that have them. Those of other addresses are ignored.
func (v *run) labeled(ctx context.Context, c postern.LabelChanges) bool {
	list := make([]postern.ChatLabel, 0, len(c.Chats))
	for _, l := range c.Chats {
		address, err := types.ParseJID(l.ChatID)
		if err != nil {
			continue
		}
		chat, known, err := v.chatOf(ctx, address)
		if err != nil {
			return false
		}
		if l.ChatID = chat; known {
			list = append(list, l)
		}
	}
	if c.Chats = list; !c.Whole && len(c.Labels)+len(list) == 0 {
		return true
	}
	return v.stores(ctx, network.LabelsSet{LabelChanges: c})
}

// renamed reports the name of the account.
func (v *run) renamed(ctx context.Context, name string) bool {
	if name = content.Name(name); name == "" {
		return true
	}
	v.session.setShown(name)
	return v.stores(ctx, network.Renamed{Name: name})
}

// settingsAtOnce is for how many chats one update reports what is set: an account may have archived thousands.
const settingsAtOnce = 500

// setting adds what is set for the chat with an address.
func (v *run) setting(
	ctx context.Context, address types.JID, s network.ChatSetting, list *[]network.ChatSetting,
) (ok bool) {
	chat, known, err := v.chatOf(ctx, address)
	if s.ChatID = chat; err == nil && known {
		*list = append(*list, s)
	}
	return err == nil
}

// mutedUntil returns until when a chat is muted; 0 if it is not.
func mutedUntil(evt *events.Mute) postern.Time {
	end := evt.Action.GetMuteEndTimestamp()
	switch {
	case !evt.Action.GetMuted():
		return 0
	case end <= 0:
		return postern.MutedForEver
	}
	return postern.Time(min(end, lastTime))
}

// lastTime is the end of the year 9999, in milliseconds: later times cannot be shown.
const lastTime = 253_402_300_799_999

// readUntil returns when the last message was sent that a chat was marked as read with.
func readUntil(evt *events.MarkChatAsRead) time.Time {
	until := evt.Timestamp
	if last := evt.Action.GetMessageRange().GetLastMessageTimestamp(); last > 0 {
		until = time.Unix(last, int64(time.Second-time.Millisecond)) // the network's clock has whole seconds
	}
	return sane(until.UTC(), time.Now().UTC())
}

// starred reports that the phone or another companion has starred a message, or has taken its star away.
func (v *run) starred(ctx context.Context, evt *events.Star) bool {
	chat, known, err := v.chatOf(ctx, evt.ChatJID)
	if err != nil {
		return false
	}
	if !known || evt.MessageID == "" {
		return true
	}
	return v.stores(ctx, network.Starred{
		ChatID: chat, About: content.Clip(evt.MessageID, maxID), On: evt.Action.GetStarred(),
		At: sane(evt.Timestamp.UTC(), time.Now().UTC()),
	})
}

// sane returns at, or now if at cannot be a time of the past.
func sane(at, now time.Time) time.Time {
	if at.Unix() <= 0 || at.After(now.Add(24*time.Hour)) {
		return now
	}
	return at
}
