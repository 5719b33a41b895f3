package session

import (
	"cmp"
	"context"
	"errors"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/presence"
)

const (
	maxSubscribed = 200 // people of whom a connection is told whether they are online
	maxShown      = 64  // updates of others that wait to be handed on; further ones are left out
)

// watching is what a live session shows of its account, and asks about others, for those who read that.
type watching struct {
	running, again bool // guarded by the session's mutex

	// Used by the goroutine that running stands for.
	available  bool
	subscribed map[string]bool // chats whose people were asked about, and with what success
}

// showing is a live session that shows others to those who read that.
type showing struct{ *liveSession }

// readChanged adapts a live session to what is read of its device.
func readChanged(e *Engine, id postern.DeviceID) {
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l != nil {
		showing{l}.adapt()
	}
}

// adapt makes the account available while somebody reads what others show, and asks about those people.
func (l showing) adapt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.watching.running {
		l.watching.again = true
		return
	}
	l.watching.running, l.watching.again = true, false
	l.e.running.Go(func() {
		for again := true; again; again = l.adaptsAgain() {
			l.show()
		}
	})
}

func (l showing) adaptsAgain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.watching.again && !l.closed
	l.watching.again, l.watching.running = false, again
	return again
}

// show does what adapt says once, and tells the readers.
func (l showing) show() {
	board, w := l.e.g.Sessions.Presence(), &l.watching
	wanted := board.Wanted(l.id)
	if wanted.Read != w.available {
		if err := l.session.Presence().Show(l.ctx, wanted.Read); err != nil {
			if l.ctx.Err() == nil {
				l.e.log.Info("who is online is not shown", "device", l.id, "error", err)
			}
			return // until the next beat of the board
		}
		w.available = wanted.Read
	}
	if !wanted.Read {
		return
	}
	told := postern.Watching{Watching: true, NotWatched: []string{}}
	for _, chat := range wanted.Chats {
		if !l.subscribe(chat) {
			told.NotWatched = append(told.NotWatched, chat)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed { // otherwise it comes after what goesDark says
		board.Publish(l.id, presence.Update{Watching: &told})
	}
}

// subscribe asks about the person of a chat, once for each connection. What fails for now is tried again at the next beat.
func (l showing) subscribe(chat string) bool {
	w := &l.watching
	if done, ok := w.subscribed[chat]; ok || len(w.subscribed) >= maxSubscribed {
		return done
	}
	err := l.askAbout(chat)
	if w.subscribed == nil {
		w.subscribed = map[string]bool{}
	}
	if err == nil || isFinal(err) {
		w.subscribed[chat] = err == nil
	}
	return err == nil
}

// askAbout asks about the person of a chat.
func (l showing) askAbout(chat string) error {
	name, err := asked{l.liveSession}.nameOf(l.ctx, chat)
	if err != nil {
		return err
	}
	return l.session.Presence().Subscribe(l.ctx, name)
}

// nameOf returns the most stable name that is known of a chat. A number that nobody knows here is going to be looked up,
// and counts as a new chat does.
func (l asked) nameOf(ctx context.Context, chat string) (string, error) {
	d, err := l.settings.now(ctx)
	if err != nil || postern.NumberOfChat(chat) == "" {
		return chat, err
	}
	c, err := l.e.g.Sessions.Known(ctx, d, chat)
	switch {
	case err != nil:
		return chat, err
	case c.LID != "":
		return string(c.LID), nil
	}
	return chat, l.paceLookUps(ctx, 1, "/chatId")
}

// showTyping shows in a chat that the account types, or no longer does.
func (l asked) showTyping(ctx context.Context, in gateway.ContactInput) error {
	name, err := l.nameOf(ctx, in.ChatID)
	if err != nil {
		return err
	}
	err = l.session.Typing(ctx, name, in.Typing)
	var nobody *network.Rejected
	if errors.As(err, &nobody) && nobody.Code == postern.RecipientNotFound {
		return network.ErrNotOnNetwork
	}
	return err
}

// goesDark tells readers that nothing is reported any more.
func (l showing) goesDark() {
	l.e.g.Sessions.Presence().Publish(l.id, presence.Update{Watching: &postern.Watching{NotWatched: []string{}}})
}

// shown hands on what others show. It never waits: what cannot be handed on at once is left out.
func (h *host) shown(u network.Update) {
	if l := h.liveNow(); l != nil {
		showing{l}.handOn(u)
	}
}

// handOn queues an update, and begins to hand on those that wait, unless that is under way.
func (l showing) handOn(u network.Update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.updates) == maxShown {
		return
	}
	l.updates = append(l.updates, u)
	if !l.handing {
		l.handing = true
		l.e.running.Go(l.handOnAll)
	}
}

func (l showing) handOnAll() {
	for u, ok := l.next(); ok; u, ok = l.next() {
		if out, ok := l.readable(l.ctx, u); ok {
			l.e.g.Sessions.Presence().Publish(l.id, out)
		}
	}
}

// next removes the oldest waiting update from the queue and returns it. ok is false if the queue is empty.
func (l showing) next() (u network.Update, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handing = len(l.updates) > 0; !l.handing {
		l.updates = nil // most devices show nothing to anybody, and need no room for it
		return nil, false
	}
	u, l.updates = l.updates[0], l.updates[1:]
	return u, true
}

// readable returns an update with our names of the chat and of the person; ok is false if it is not for the device.
func (l showing) readable(ctx context.Context, u network.Update) (out presence.Update, ok bool) {
	d, err := l.settings.now(ctx)
	if err != nil {
		return out, false
	}
	at := l.e.db.Now()
	switch u := u.(type) {
	case network.Typing:
		c, err := l.e.g.Sessions.Known(ctx, d, cmp.Or(u.FromLID, u.From))
		out.Typing = &postern.ShownTyping{
			ChatID: ourChat(u.ChatID, c), From: cmp.Or(c.PhoneNumber, postern.Maybe(u.From)),
			FromLID: cmp.Or(c.LID, postern.Maybe(u.FromLID)), Typing: u.Typing, At: at,
		}
		return out, err == nil && (postern.IsDirect(u.ChatID) || d.Receive.Groups)
	case network.Seen:
		c, err := l.e.g.Sessions.Known(ctx, d, u.ChatID)
		out.Presence = &postern.ShownPresence{
			ChatID: ourChat(u.ChatID, c), Available: u.Available, LastSeenAt: postern.TimeOf(u.LastSeen), At: at,
		}
		return out, err == nil
	}
	return out, false
}

// ourChat returns our name of a chat: of a direct one, that with the person.
func ourChat(chat string, c postern.KnownContact) string {
	if postern.IsDirect(chat) && c.ID != "" {
		return c.ChatID
	}
	return chat
}
