package whatsapp

import (
	"context"
	"errors"
	"sync"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/network/whatsapp/live"
	"postern/internal/network/whatsapp/state"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// session is a linked account.
type session struct {
	driver  *Driver
	name    string    // of the account
	account types.JID // its address

	requested requests     // from the phone
	ringing   live.Ringing // calls
	online    live.Online  // of the current connection

	mu    sync.Mutex // guards the fields below
	live  *conn      // the connection for sends; nil unless it is live
	shown string     // the name that the network shows others; "" if it is not known
}

var _ network.Session = (*session)(nil)

// Run connects once and reports to host until the connection ends.
func (s *session) Run(ctx context.Context, host network.Host) error {
	device, err := s.driver.keys.Load(ctx, s.name)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, network.ErrUnknownAccount):
		return &network.Ended{Status: postern.LoggedOut, Reason: "keys-gone"}
	case err != nil:
		return disconnected("store-unavailable")
	}
	v := s.newRun(device, host)
	defer s.setLive(nil)
	ended := v.run(ctx, v.handle, func(ctx context.Context) { v.watch(ctx, s.driver.pace.silence) })
	if ended == nil {
		return nil
	}
	return ended
}

// newRun prepares one Run.
func (s *session) newRun(device *store.Device, host network.Host) *run {
	state.Guard(device)
	audience := &live.Audience{ContactStore: device.Contacts}
	device.Contacts = audience
	s.online.Begin()
	s.setShown(device.PushName)
	v := &run{
		conn: s.driver.connect(device, host), session: s,
		progress: make(chan struct{}, 1), unreadable: make(map[string]bool), timers: make(map[string]network.Timer),
		syncing: make(map[appstate.WAPatchName]bool),
	}
	v.audience = audience
	v.state, v.onReceived = state.New(v.cli, v.keys, v.stateChanged), v.sawNotice
	v.cli.GetMessageForRetry = v.messageForRetry
	v.unread, v.setAside = v.reportUnread, v.lastTry
	return v
}

func (s *session) setLive(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = c
}

func (s *session) liveConn() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// Unlink removes this companion from the account, and its keys.
func (s *session) Unlink(ctx context.Context) error {
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return network.ErrNotConnected
	}
	err := c.unlink(ctx, s.account)
	c.calls.Leave()
	if err != nil {
		return err
	}
	c.end(&network.Ended{Status: postern.LoggedOut, Reason: "unlinked"})
	c.keys.Abandon()
	return s.driver.Forget(ctx, s.name)
}

// Groups returns the groups of the account.
func (s *session) Groups() network.Groups { return live.Groups{Enter: s.enter, Settle: s.settle} }

// settle waits until the host has the notices about groups that have arrived; see [flight.settle].
func (s *session) settle() error {
	c := s.liveConn()
	if c == nil {
		return whatsmeow.ErrNotConnected
	}
	return c.flight.settle(settleTimeout)
}

// Channels returns the channels of the network.
func (s *session) Channels() network.Channels { return live.Channels{Enter: s.enter} }

// enter returns the client of the live connection.
func (s *session) enter() (cli *whatsmeow.Client, leave func(), ok bool) {
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return nil, nil, false
	}
	return c.cli, c.calls.Leave, true
}

// People returns what the network shows the account of others.
func (s *session) People() network.People { return live.People{Enter: s.enter} }

// Presence returns what the account and others show at the moment.
func (s *session) Presence() network.Presence {
	return live.Presence{Enter: s.enter, Name: s.knownName, Person: s.recipient, Online: &s.online}
}

// recipient returns the network's address of a chat, as sends find it.
func (s *session) recipient(ctx context.Context, chat string) (to types.JID, err error) {
	err = s.withState(ctx, func(ctx context.Context, c *conn) error {
		to, err = c.recipient(ctx, chat)
		return err
	})
	return to, err
}

// Profile returns what the network shows others of the account.
func (s *session) Profile() network.Profile {
	return live.Profile{Enter: s.enter, Name: s.shownName, Rename: s.rename}
}

func (s *session) setShown(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = content.Name(name)
}

func (s *session) knownName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// shownName reads the name of the account, as its phone or a companion has set it last. If the app state cannot be read,
// it returns the name that is known.
func (s *session) shownName(ctx context.Context) (string, error) {
	err := s.withState(ctx, func(ctx context.Context, c *conn) error {
		if err := c.state.Sync(ctx, state.Settings, func() {}); err != nil {
			c.log.WarnContext(ctx, "the name of the account was not read", "error", redact("read", err))
		}
		return nil
	})
	return s.knownName(), err
}

// rename changes the name of the account. The network shows others the one of the newest presence, so that is sent too.
// The account stays available, or not.
func (s *session) rename(ctx context.Context, name string) error {
	return s.withState(ctx, func(ctx context.Context, c *conn) error {
		if err := c.state.Change(ctx, appstate.BuildSettingPushName(name)); err != nil {
			return refusedChange(err)
		}
		if err := s.online.Tell(ctx, c.cli, name); err != nil {
			return redact("tell the name", err)
		}
		return nil
	})
}

// withState calls do with the live connection, and gives it as much time as a send.
func (s *session) withState(ctx context.Context, do func(context.Context, *conn) error) error {
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return network.ErrNotConnected
	}
	defer c.calls.Leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	return do(ctx, c)
}

// CheckNumbers asks which numbers are on the network.
func (s *session) CheckNumbers(ctx context.Context, numbers []string) ([]postern.CheckedNumber, error) {
	return live.CheckNumbers(ctx, s.enter, numbers)
}

// Typing shows in a chat that the account types or records, or no longer does.
func (s *session) Typing(ctx context.Context, chat string, t postern.Typing) error {
	to, err := s.recipient(ctx, chat)
	if err != nil {
		return err
	}
	return live.Typing(ctx, s.enter, to, t)
}

// RejectCall rejects a call that rings.
func (s *session) RejectCall(ctx context.Context, callID string) error {
	return s.ringing.Reject(ctx, s.enter, callID)
}

// ChangeChat changes what the account has set for a chat.
func (s *session) ChangeChat(ctx context.Context, chat string, change network.ChatChange) error {
	return s.withState(ctx, func(ctx context.Context, c *conn) error {
		to, err := c.recipient(ctx, chat)
		if err != nil {
			return err
		}
		for _, info := range c.patches(to, change) {
			if err := c.state.Change(ctx, info); err != nil {
				return refusedChange(err)
			}
		}
		return nil
	})
}

// ChangeLabel makes, changes or deletes a label of the account.
func (s *session) ChangeLabel(ctx context.Context, l postern.LabelEdit) error {
	return s.withState(ctx, func(ctx context.Context, c *conn) error {
		if err := c.state.Change(ctx, state.LabelPatch(l)); err != nil {
			return refusedChange(err)
		}
		return nil
	})
}

// unlink asks the vendor, whose answer races with the end of the link. whatsmeow's
// Logout is not used, because it also disconnects and deletes.
//
// The query ends with the connection or after unlinkTimeout, and not with ctx: if
// a query is canceled while it is written, whatsmeow closes its channel, and
// panics if the answer arrives at that moment.
func (c *conn) unlink(ctx context.Context, account types.JID) error {
	//nolint:staticcheck // marked as dangerous, but whatsmeow offers no other way
	_, err := c.cli.DangerousInternals().SendIQ(context.WithoutCancel(ctx), whatsmeow.DangerousInfoQuery{
		Namespace: "md", Type: "set", To: types.ServerJID, Timeout: unlinkTimeout, NoRetry: true,
		Content: []waBinary.Node{{
			Tag: "remove-companion-device", Attrs: waBinary.Attrs{"jid": account, "reason": "user_initiated"},
		}},
	})
	if ended := c.ended(); err == nil || ended != nil && ended.Status == postern.LoggedOut {
		return nil
	}
	return redact("unlink", err)
}

// run is one Run of a session.
type run struct {
	*conn
	session *session

	progress   chan struct{}            // readable after the vendor has delivered something
	evidence   evidence                 // guarded by conn.mu
	timers     map[string]network.Timer // that were reported, by chat; guarded by conn.mu
	unreadable map[string]bool          // ids reported as undecryptable; guarded by conn.mu

	syncing map[appstate.WAPatchName]bool // collections that are about to be read; guarded by conn.mu
}

// evidence is what was observed of a session that becomes live.
type evidence uint8

const (
	authenticated evidence = 1 << iota // the login and what follows it succeeded
	drained                            // everything that was waiting has been delivered
	everything    = authenticated | drained
)

// handle handles one event of whatsmeow.
func (v *run) handle(ctx context.Context, evt any) bool {
	select {
	case v.progress <- struct{}{}:
	default:
	}
	if at, seen := live.PhoneSeen(evt); seen && !v.stores(ctx, network.PhoneSeen{At: sane(at.UTC(), time.Now().UTC())}) {
		return false
	}
	switch evt := evt.(type) {
	case *events.Message:
		return v.storeShared(ctx, evt) && v.historyOffered(ctx, evt) && v.message(ctx, evt) && v.isDurable(ctx)
	case *events.UndecryptableMessage:
		return v.undecryptable(ctx, evt)
	case *events.Receipt:
		return v.receipt(ctx, evt)
	case *events.ChatPresence:
		return v.typing(ctx, evt)
	case *events.Presence:
		return v.seen(ctx, evt)
	case *events.CallTerminate:
		v.session.ringing.End(evt.CallID)
	case *events.CallAccept: // on the phone
		v.session.ringing.End(evt.CallID)
	case *events.CallReject:
		v.session.ringing.End(evt.CallID)
	case *events.CallOffer:
		v.session.ringing.Begin(evt.CallID, evt.CallCreator, evt.Timestamp)
		_, video := evt.Data.GetOptionalChildByTag("video")
		return v.call(ctx, evt.BasicCallMeta, postern.Call{Video: video, Group: !evt.GroupJID.IsEmpty()})
	case *events.CallOfferNotice:
		v.session.ringing.Begin(evt.CallID, evt.CallCreator, evt.Timestamp)
		return v.call(ctx, evt.BasicCallMeta, postern.Call{Video: evt.Media == "video", Group: evt.Type == "group"})
	case *events.MediaRetry:
		return v.offered(ctx, evt)
	case *events.JoinedGroup:
		u, err := live.Joined(ctx, v.cli, evt)
		return err == nil && v.stores(ctx, u)
	case *events.GroupInfo:
		return v.groupChanged(ctx, evt)
	case *events.NewsletterJoin:
		one, ok := live.ChannelOf(&evt.NewsletterMetadata)
		return !ok || v.stores(ctx, network.ChannelFollowed{Channel: one})
	case *events.NotifyAccountReachoutTimelock:
		return v.stores(ctx, network.NewChats{Allowed: !evt.IsActive, Until: evt.TimeEnforcementEnds.Time})
	case *events.Connected:
		return v.saw(ctx, authenticated)
	case *events.OfflineSyncCompleted:
		return v.saw(ctx, drained)
	case *events.KeepAliveTimeout:
		v.askAgain(ctx)
	case *events.ManualLoginReconnect:
		v.end(disconnected("restart"))
	case *events.Disconnected:
		v.lost()
	}
	return true
}

// typing reports that somebody types, if that is read. What comes before the session is live was waiting at the vendor,
// or is repeated.
func (v *run) typing(ctx context.Context, evt *events.ChatPresence) bool {
	kind, ok := live.TypingOf(evt)
	src := evt.MessageSource
	if !ok || src.IsFromMe || !isDirect(src) && !isOfGroup(src) || !v.isWatched() {
		return true
	}
	at, known, err := v.place(ctx, src)
	if err != nil || !known {
		return true // nobody misses it
	}
	u := network.Typing{ChatID: at.chat, From: at.who.phone(), Typing: kind}
	if at.who.lid != "" {
		u.FromLID = postern.ChatOfLID(at.who.lid)
	}
	return v.stores(ctx, u)
}

// seen reports whether somebody is online, if that is read.
func (v *run) seen(ctx context.Context, evt *events.Presence) bool {
	if !v.isWatched() || !v.session.online.IsNews(evt) {
		return true
	}
	chat, known, err := v.chatOf(ctx, evt.From)
	if err != nil || !known || !postern.IsDirect(chat) {
		return true
	}
	return v.stores(ctx, network.Seen{ChatID: chat, Available: !evt.Unavailable, LastSeen: evt.LastSeen.UTC()})
}

// isWatched reports whether the account is available, which it is while somebody reads what others show.
func (v *run) isWatched() bool { return v.session.liveConn() == v.conn && v.session.online.Available() }

// groupChanged reports what a notice says about a group.
func (v *run) groupChanged(ctx context.Context, evt *events.GroupInfo) bool {
	list, err := live.Updates(ctx, v.cli, evt)
	for _, u := range list {
		if !v.stores(ctx, u) {
			return false
		}
	}
	return err == nil
}

// askAgain pings the vendor once more, right after a ping without an answer, and ends the
// connection if this one has none either. So a half-open connection lasts for at most one
// interval between pings and two waits for an answer, which is 50 s.
func (v *run) askAgain(ctx context.Context) {
	//nolint:staticcheck // marked as dangerous, but whatsmeow offers no other way
	if ok, open := v.cli.DangerousInternals().SendKeepAlive(ctx); open && !ok {
		v.end(disconnected("keepalive-timeout"))
	}
}

// isDurable waits until the keys that a message changed are on disk, because
// whatsmeow acknowledges it next. Usually they were written together with the
// host's update; a message that is not reported to the host has its own commit.
func (v *run) isDurable(ctx context.Context) bool {
	return v.keys == nil || v.keys.Flush(ctx) == nil
}

// saw records evidence, and reports Live once it is complete.
func (v *run) saw(ctx context.Context, e evidence) bool {
	v.mu.Lock()
	before := v.evidence
	v.evidence |= e
	live := v.evidence == everything && before != everything
	v.mu.Unlock()
	if !live {
		return true
	}
	v.session.setLive(v.conn)
	// What was announced may not have been read before the last connection ended.
	v.sync(state.Stars)    //nolint:contextcheck // the connection's
	v.sync(state.Chats)    //nolint:contextcheck // the connection's
	v.sync(state.Labels)   //nolint:contextcheck // the connection's
	v.sync(state.Contacts) //nolint:contextcheck // the connection's
	// The name may have changed since the start of the connection.
	return v.stores(ctx, network.Live{DisplayName: v.session.knownName()})
}

// watch ends a connection that makes no progress towards a live session. It
// returns when the session is live or has ended.
func (v *run) watch(ctx context.Context, silence time.Duration) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for v.session.liveConn() == nil {
		select {
		case <-ctx.Done():
			return
		case <-v.progress:
			timer.Reset(silence)
		case <-timer.C:
			if v.session.liveConn() == nil {
				v.end(disconnected("not-receiving"))
			}
			return
		}
	}
}
