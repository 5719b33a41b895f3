package session

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// liveSession is a connection that can send. At most one goroutine sends on it,
// and only while there is something to send.
type liveSession struct {
	e        *Engine
	id       postern.DeviceID
	session  network.Session
	settings *settings
	pacer    *pacer
	seen     *atomic.Int64   // as in host
	ctx      context.Context //nolint:containedctx // it is the life of the connection
	cancel   context.CancelFunc

	mu      sync.Mutex
	sending bool
	again   bool
	urgent  bool // a message of the high lane was queued since the sender last looked
	closed  bool
	work    sync.WaitGroup

	taking    bool        // requests of callers are being taken
	askedMore bool        // and more of them have come
	answering int         // of them are being carried out
	notices   notices     // about groups
	listing   atomic.Bool // the groups of the account are being read
	listed    atomic.Bool // they are known
	pacing    atomic.Bool // the device has a pace

	watching watching
	updates  []network.Update // of others, to be handed on to who reads them
	handing  bool             // that is under way

	looked map[string]bool // channels whose names were looked for

	history historyReading

	files        map[prepared]*preparation // that are not on the network yet
	preparing    int                       // of them
	handed       map[prepared]postern.Time // files that are on the network, since when
	loads        downloads
	previews     map[postern.MessageID]bool // messages whose links are being looked up
	timers       map[string]store.Timer     // of the chats; nil: to be read
	timerChanges int

	// Used by the sending goroutine only.
	retry   map[postern.MessageID]resend
	turns   map[store.ChatKind]*turns // of the lanes; with a pace for each kind of chat
	batch   int                       // messages to read next
	behind  int                       // actions that the last batch found waiting for a repetition
	reached int                       // how many others of a group get the message of the last attempt; 0 for one person
	ended   *store.FinishOutbound     // the outcome of the last attempt, to be written with what is next
	ending  []func() error            // wait for the outcomes before it
	held    []string                  // chats whose next message waits for its file
	paced   *time.Timer               // starts the sender again when the pace allows one more
}

// resend is a send with unknown outcome that will be repeated.
type resend struct {
	at   time.Time
	wait time.Duration
	of   postern.Message
}

// isBehind reports whether an action waits: while it is not known that its message, or an earlier
// action in the chat, has arrived, it could arrive first. Messages do not wait.
func (l *liveSession) isBehind(m postern.Message) bool {
	if m.About == "" {
		return false
	}
	for id, r := range l.retry {
		if id != m.ID && r.of.ChatID == m.ChatID && (r.of.About != "" || r.of.NetworkID == m.About) {
			return true
		}
	}
	return false
}

// goLive lets a device send on its connection, starting with the queued messages.
func (e *Engine) goLive(h *host) {
	ctx, cancel := context.WithCancel(context.Background()) // ends with the connection, in goDark
	l := &liveSession{
		e: e, id: h.d.ID, session: h.session, settings: h.settings, pacer: h.pacer, seen: &h.seen, ctx: ctx, cancel: cancel,
		retry: map[postern.MessageID]resend{}, turns: newTurns(), batch: sendBatch,
		files: map[prepared]*preparation{}, handed: map[prepared]postern.Time{},
		loads: downloads{running: map[postern.MediaID]bool{}}, previews: map[postern.MessageID]bool{},
	}
	e.mu.Lock()
	e.live[l.id] = l
	l.closed = e.quiet
	e.mu.Unlock()
	e.liveChange(1)
	l.kick()
	l.fetchFiles()
	l.readHistory()
	e.running.Go(l.listGroups)
	e.running.Go(l.nameChannels)
	l.carryOut()
	showing{l}.adapt()
}

// goDark stops the sending of a device whose connection has ended.
func (e *Engine) goDark(id postern.DeviceID) {
	e.mu.Lock()
	l := e.live[id]
	delete(e.live, id)
	e.mu.Unlock()
	if l != nil {
		e.liveChange(-1)
		l.stop(0)
		showing{l}.goesDark()
	}
}

// quiesce stops all sending, so that the sends in progress can finish before the connections are closed. It holds no
// lock while it waits: a send may need what a message that arrives meanwhile has locked.
func (e *Engine) quiesce() {
	e.mu.Lock()
	e.quiet = true
	live := slices.Collect(maps.Values(e.live))
	e.mu.Unlock()
	var all sync.WaitGroup
	for _, l := range live {
		all.Go(func() { l.stop(sendGrace) })
	}
	all.Wait()
}

// stop starts no further send, gives the one in progress some time, and returns
// after the sender has ended.
func (l *liveSession) stop(grace time.Duration) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	cancel := time.AfterFunc(grace, l.cancel)
	defer cancel.Stop()
	l.work.Wait()
	l.cancel()
}

func (l *liveSession) stopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (e *Engine) outboundQueued(id postern.DeviceID) {
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l != nil {
		l.kick()
	}
}

// kick starts the sender, or makes it look once more before it ends.
func (l *liveSession) kick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.sending {
		l.again = true
		return
	}
	l.sending = true
	l.work.Go(l.drain)
}

// wasKicked reports whether the sender was kicked since it last asked.
func (l *liveSession) wasKicked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kicked := l.again
	l.again = false
	return kicked
}

// idle ends the sender, and reports whether it did: not if it was kicked since it
// last looked.
func (l *liveSession) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again && !l.closed {
		l.again = false
		return false
	}
	l.sending = false
	return true
}

// drain sends until nothing can be sent now.
func (l *liveSession) drain() {
	l.held = nil
	for {
		more, err := l.sendBatch()
		switch {
		case err != nil:
			l.later(storeRetryWait, err)
		case l.wasKicked():
			l.held = nil // what they wait for may be there
			continue
		case more:
			continue
		}
		if l.idle() {
			return
		}
		l.held = nil
	}
}

// later starts the sender again after a while.
func (l *liveSession) later(wait time.Duration, why error) {
	if l.stopped() {
		return
	}
	if why != nil {
		l.e.log.Warn("sending is delayed", "device", l.id, "error", why)
	}
	time.AfterFunc(wait, l.kick)
}

// sendBatch sends the first messages of the lanes in their turns, and reports whether the queue may
// have more that can be sent now. Messages that are queued meanwhile kick the sender.
func (l *liveSession) sendBatch() (more bool, err error) {
	if l.stopped() {
		return false, nil
	}
	l.look()
	pace, err := l.paceOf(l.ctx)
	if err != nil {
		return false, err
	}
	l.pacing.Store(pace.Pace != (postern.Pace{}))
	if l.pacing.Load() {
		tried, err := l.sendPaced(pace)
		return tried > 0, err
	}
	if err := l.forget(); err != nil {
		return false, err
	}
	limit := l.batch + len(l.retry) + l.behind
	waiting, err := l.e.db.Outbox.Next(l.ctx, l.id, l.held, limit)
	if err != nil {
		return false, err
	}
	turns := l.turns[allChats]
	list := turns.order(waiting, limit)
	tried, _, err := l.sendSome(list, turns, func(store.QueuedMessage) time.Duration { return 0 })
	l.batch = min(max(2*tried, smallestBatch), sendBatch) // messages that wait for their files are read again and again
	seen := len(list) < limit && len(l.held) < maxHeld && !l.wasUrged(nil)
	return tried > 0 && !seen, err
}

// forget removes the resends of messages that have ended.
func (l *liveSession) forget() error {
	if len(l.retry) == 0 {
		return nil
	}
	list, err := l.e.db.Outbox.Repeating(l.ctx, l.id, sendBatch+len(l.retry)+l.behind)
	if err != nil {
		return err
	}
	left := map[postern.MessageID]resend{}
	for _, m := range list {
		if r, ok := l.retry[m.ID]; ok {
			left[m.ID] = r
		}
	}
	l.retry = left
	if len(left) == 0 {
		l.behind = 0
	}
	return nil
}

// sendOne makes one attempt. An error means that the store did not record the
// attempt, or that the connection has ended: the message stays in the queue.
//
// The mark that the message may leave is handed to the store before the message is encrypted, and
// the outcome together with the mark of the next message: with the keys of the recipient, which
// the driver writes, that is one commit for each message.
func (l *liveSession) sendOne(m store.QueuedMessage) error {
	l.startFinish()
	if now := l.e.db.Now(); m.ExpiresAt <= now {
		delete(l.retry, m.ID) // what waits for it in its chat no longer does
		return l.e.db.Outbox.ExpireOne(l.ctx, m, now)
	}
	if err := cmp.Or(l.failure(m.Message), l.blocked(m.Message)); err != nil {
		return l.settleUnsent(m, err)
	}
	out, err := l.e.outbound(l.ctx, m.Message)
	if err != nil {
		return l.settleUnsent(m, err)
	}
	if err := l.address(&out); err != nil {
		return err
	}
	out.Leave = l.mayLeave(m)
	l.reached = 0
	if postern.IsGroup(m.ChatID) {
		out.Reach = func(people int) { l.reached = people }
	}
	at, err := l.attempt(m.Message, out)
	l.limited(err)
	if err != nil {
		switch why := out.Leave(); {
		case errors.Is(why, store.ErrNotQueued):
			return l.whyUnmarked(m.ID)
		case why != nil: // nothing has left
			return why
		}
	}
	return l.settle(m, at, err)
}

// attempt hands a message to the network, as a step of its trace.
func (l *liveSession) attempt(m postern.Message, out network.Outbound) (time.Time, error) {
	ctx, cancel := context.WithTimeout(l.ctx, network.SendTimeout)
	defer cancel()
	ctx, span := l.e.tracer.Start(l.e.tracer.Continue(ctx, m.Trace), "send")
	defer span.End()
	began := time.Now()
	at, err := l.session.Send(ctx, out)
	result := outcome(err)
	l.e.log.InfoContext(ctx, "message attempt", "device", l.id, "message", m.ID, "workspace", m.WorkspaceID,
		"outcome", result, "duration_ms", time.Since(began).Milliseconds())
	span.Set("device", string(l.id))
	span.Set("message", string(m.ID))
	if err != nil {
		span.Fail(result)
	}
	return at, err
}

// whyUnmarked returns an error if a message that could not be marked is still queued: its device was
// paused, and what follows in its chat must not overtake it.
func (l *liveSession) whyUnmarked(id postern.MessageID) error {
	queued, err := l.e.db.Outbox.IsQueued(l.ctx, id)
	if queued {
		return network.ErrNotConnected
	}
	if err == nil {
		delete(l.retry, id) // what waits for it in its chat no longer does
	}
	return err
}

func outcome(err error) string {
	var rejected *network.Rejected
	switch {
	case err == nil:
		return "sent"
	case errors.As(err, &rejected):
		return string(rejected.Code)
	case errors.Is(err, store.ErrNotQueued):
		return "not-queued"
	case errors.Is(err, network.ErrNotConnected):
		return "not-connected"
	}
	return "unknown"
}

// settle notes the outcome of an attempt, for startFinish or finish.
func (l *liveSession) settle(m store.QueuedMessage, at time.Time, err error) error {
	now := l.e.db.Now()
	var rejected *network.Rejected
	switch {
	case err == nil:
		delete(l.retry, m.ID)
		l.nameChannel(m.ChatID)
		l.ended = &store.FinishOutbound{
			MessageID: m.ID, Status: postern.Sent, SentAt: postern.TimeOf(at), At: now, Attempt: postern.AttemptSent,
			Recipients: l.reached,
		}
		return nil
	case errors.As(err, &rejected):
		delete(l.retry, m.ID)
		f := failure(m, rejected)
		l.ended = &store.FinishOutbound{
			MessageID: m.ID, Status: postern.Failed, Refund: !m.FrameLeft && beforeFirstFrame(f.Code), At: now,
			Failure: f, Attempt: refusal(rejected.Code),
		}
		return nil
	case errors.Is(err, network.ErrNotConnected):
		l.e.db.Outbox.NotConnected(m.ID, !m.FrameLeft)
		return err
	}
	if l.reached > 0 { // receipts may confirm it
		l.e.db.Outbox.Reached(m.ID, l.reached)
	}
	l.repeat(m.Message)
	return nil
}

// mayLeave hands the mark of a message to the store. The function that it returns waits for the mark
// and for the outcome of the message before: if that one is not recorded, it is sent again, and must
// not come after this one. As both are written in their order, this costs no time.
func (l *liveSession) mayLeave(m store.QueuedMessage) func() error {
	waits := []func() error{l.e.db.Outbox.MarkSending(m.ID, m.Attempts)}
	if n := len(l.ending); n > 0 {
		waits = append(waits, l.ending[n-1])
	}
	return func() error {
		for _, wait := range waits {
			if err := wait(); err != nil {
				return err
			}
		}
		return nil
	}
}

// startFinish hands the outcome of the last attempt to the store.
func (l *liveSession) startFinish() {
	if l.ended != nil {
		l.ending = append(l.ending, l.e.db.Outbox.StartFinish(*l.ended))
		l.ended = nil
	}
}

// finish waits until the outcomes of all attempts are recorded, even if the connection has
// ended. The queue must not be read again before.
func (l *liveSession) finish() (err error) {
	if l.ended != nil {
		err = l.e.db.Outbox.Finish(context.WithoutCancel(l.ctx), *l.ended)
		l.ended = nil
	}
	for _, wait := range l.ending {
		err = errors.Join(err, wait())
	}
	l.ending = nil
	return err
}

// blocked returns the error of a message by which the account would start a chat, while the network does not allow it.
func (l *liveSession) blocked(m postern.Message) error {
	d, err := l.settings.now(l.ctx)
	if err != nil || d.NewChats.Allowed || m.About != "" || !d.Receive.Direct || m.ChatID == string(d.PhoneNumber) {
		return err
	}
	starts, err := l.e.db.Outbox.StartsChat(l.ctx, m)
	if err != nil || !starts {
		return err
	}
	return &network.Rejected{
		Code:   postern.RestrictedSender,
		Detail: "the network does not let this account write to people who never wrote to it; it was not sent",
	}
}

// limited records that the network does not let the account start chats, if a refusal says so.
func (l *liveSession) limited(refusal error) {
	r, ok := errors.AsType[*network.Rejected](refusal)
	if !ok || r.Code != postern.RestrictedSender {
		return
	}
	d, err := l.settings.now(l.ctx)
	if err == nil && d.NewChats.Allowed {
		err = l.e.g.Sessions.SetNewChats(l.ctx, l.id, postern.NewChats{})
	}
	if err != nil && l.ctx.Err() == nil {
		l.e.log.Warn("the limit of an account is not recorded", "device", l.id, "error", err)
	}
}

// failure returns how a refused message ends. An attempt before this one may have reached the recipient: then only its
// repetition was refused, and a receipt may still confirm the message. An earlier attempt reached nobody either if the
// number is not on the network.
func failure(m store.QueuedMessage, r *network.Rejected) postern.Failure {
	if m.FrameLeft && r.Code != postern.Unconfirmed && r.Code != postern.RecipientNotFound {
		return postern.Failure{
			Code: postern.Unconfirmed, Detail: "it may have arrived, and cannot be repeated: " + r.Detail,
		}
	}
	return postern.Failure{Code: r.Code, Detail: r.Detail}
}

// refusal returns the outcome of the attempt that a refusal ends. A message that ends unconfirmed
// was not refused.
func refusal(c postern.FailureCode) postern.AttemptOutcome {
	if c == postern.Unconfirmed {
		return postern.AttemptUnconfirmed
	}
	return postern.AttemptRefused
}

// settleUnsent records the refusal of a message that was not handed to the driver, or
// returns any other error.
func (l *liveSession) settleUnsent(m store.QueuedMessage, err error) error {
	if r, refused := errors.AsType[*network.Rejected](err); refused {
		f := failure(m, r)
		err = l.settle(m, time.Time{}, &network.Rejected{Code: f.Code, Detail: f.Detail})
		if l.ended != nil {
			l.ended.Refund = !m.FrameLeft
		}
	}
	return err
}

// beforeFirstFrame reports whether a refusal comes before the first frame of the
// message is sent.
func beforeFirstFrame(c postern.FailureCode) bool {
	switch c {
	case postern.RecipientNotFound, postern.NotInGroup, postern.EncryptionFailed, postern.MediaUnusable:
		return true
	default:
		return false
	}
}

// repeat schedules another attempt after an unknown outcome: under the same id,
// with growing waits, and without delaying the messages behind it.
func (l *liveSession) repeat(m postern.Message) {
	r := l.retry[m.ID]
	r.wait = min(max(2*r.wait, resendFirst), resendMax)
	r.at, r.of = time.Now().Add(r.wait), m
	l.retry[m.ID] = r
	l.later(r.wait, nil)
}
